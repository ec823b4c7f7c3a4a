/** The built app in a real browser, against the wire. */
import { readFile } from 'node:fs/promises'
import type { Locator } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { card, lookAt, until, usePages } from '../fixture/pages.ts'
import { PERSON, SETUP_TOKEN } from '../fixture/service.ts'
import { SessionLog } from '../fixture/session-log.ts'

const { service, url, complaints, newPage, signedIn, openChat, frames } = usePages()

describe('who is here', () => {
  test('the first visit sets up the administrator', async () => {
    const page = await newPage()
    await page.goto(`${url()}/`)
    await page.getByLabel('Setup token').waitFor()
    await page.goto(`${url()}/setup?token=wrong`)
    const fill = async () => {
      await page.getByLabel('Your name').fill(PERSON.name)
      await page.getByLabel('E-mail').fill(PERSON.email)
      await page.getByLabel('Password', { exact: true }).fill(PERSON.password)
      await page.getByRole('button', { name: 'Create account' }).click()
    }
    await fill()
    await page.getByRole('alert').getByText('no longer valid').waitFor()
    complaints.length = 0
    await page.goto(`${url()}/setup?token=${SETUP_TOKEN}`)
    await fill()
    await page.getByRole('heading', { name: 'What are we doing today, Ada?' }).waitFor()
    expect(new URL(page.url()).pathname).toBe('/')
  })

  test('a chat’s own address survives the sign-in, and a wrong password is said', async () => {
    const page = await newPage()
    service.setupNeeded = false
    await page.goto(`${url()}/s/s_error`)
    await page.getByLabel('E-mail').fill(PERSON.email)
    await page.getByLabel('Password', { exact: true }).fill('wrong password')
    await page.keyboard.press('Enter')
    await page.getByRole('alert').getByText('Wrong e-mail or password.').waitFor()
    complaints.length = 0
    await page.getByLabel('Password', { exact: true }).fill(PERSON.password)
    await page.keyboard.press('Enter')
    await page.getByTestId('prompt-end').waitFor()
  })
})

test('a file that is dropped beside the chat does not take its place, in a field text still arrives', async () => {
  service.demo = false
  const page = await signedIn({ sessionId: 's_fixed' })
  const taken = await page.evaluate(() => {
    const taken: Record<string, boolean> = {}
    const file = new DataTransfer()
    file.items.add(new File(['x'], 'x.pdf', { type: 'application/pdf' }))
    const text = new DataTransfer()
    text.setData('text/plain', 'words')
    for (const [where, data] of [
      ['aside', file],
      ['header', file],
      ['[data-testid=composer]', file],
      ['aside', text],
      ['[data-testid=composer]', text],
    ] as const) {
      for (const type of ['dragover', 'drop']) {
        const event = new DragEvent(type, { bubbles: true, cancelable: true, dataTransfer: data })
        document.querySelector(where)?.dispatchEvent(event)
        taken[`${type} ${data === file ? 'file' : 'text'} ${where}`] = event.defaultPrevented
      }
    }
    return taken
  })
  // If it is not prevented, the browser opens the file, or puts the text into the field.
  expect(Object.entries(taken).filter(([, prevented]) => !prevented)).toEqual([
    ['dragover text [data-testid=composer]', false],
    ['drop text [data-testid=composer]', false],
  ])
  await page.getByRole('list', { name: 'Attached files' }).getByText('x.pdf').waitFor()
})

test('a first message that was refused waits above the composer, and the new chat is free for another', async () => {
  const page = await signedIn()
  service.answering = false
  await page.getByTestId('composer').fill('Do the first thing')
  await page.keyboard.press('Enter')
  await until(() => expect(frames('ai_chat')).toHaveLength(1))
  const [first] = frames('ai_chat') as { requestId: string }[]
  service.answering = true
  const message = 'The agent cannot be reached.'
  service.tell({
    type: 'ai_chat_error',
    requestId: first?.requestId ?? '',
    code: 'agent_unavailable',
    message,
  })
  const refused = page.getByTestId('refused')
  await refused.getByText(message).waitFor()
  await page.getByRole('heading', { name: /What are we doing today/ }).waitFor()
  expect(await lookAt(page, 'refused')).toEqual([])
  await page.getByTestId('composer').fill('Do the second thing')
  await page.keyboard.press('Enter')
  await page.waitForURL(/\/s\//)
  await page.keyboard.press('Control+Shift+O')
  await refused.getByText('Do the first thing').waitFor()
  await refused.getByRole('button', { name: 'Send again' }).click()
  await page.getByTestId('message-user').getByText('Do the first thing').waitFor()
  expect(frames('ai_chat').at(-1)).toMatchObject({ requestId: first?.requestId })
  expect(await refused.count()).toBe(0)
})

test('above one’s ceiling no chat begins: such modes say why, and what was refused is sent in the mode of now', async () => {
  const page = await signedIn()
  const refused = page.getByTestId('refused')
  service.answering = false
  await page.getByTestId('composer').fill('Do it')
  await page.keyboard.press('Enter')
  await until(() => expect(frames('ai_chat')).toMatchObject([{ mode: 'auto-edit' }]))
  const [first] = frames('ai_chat') as { requestId: string }[]
  const { requestId } = first ?? { requestId: '' }
  service.answering = true
  // An administrator has just set it.
  service.modeCeiling = 'manual'
  const message = 'Your administrator limits you to “manual”.'
  service.tell({ type: 'ai_chat_error', requestId, code: 'forbidden', message })
  await refused.getByText(message).waitFor()
  await page.locator('[data-testid=mode][data-mode=manual]').click()
  const above = page.getByRole('menuitemradio', { name: /Auto-edit/ })
  expect(await above.innerText()).toBe('Auto-edit\nYour administrator limits you to Manual.')
  expect(await above.getAttribute('aria-disabled')).toBe('true')
  expect(await lookAt(page, 'mode-ceiling')).toEqual([])
  await above.click({ force: true })
  await page.keyboard.press('Escape')
  await refused.getByRole('button', { name: 'Send again' }).click()
  await page.getByTestId('message-user').getByText('Do it').waitFor()
  expect(frames('ai_chat').at(-1)).toMatchObject({ requestId, mode: 'manual' })
})

test('words from right to left begin at the right, code does not, and a wide table scrolls', async () => {
  const cells = Array.from({ length: 9 }, (_, n) => `Column ${n} with a long name`)
  const table = [cells, cells.map(() => '---'), cells.map((_, n) => `some words of cell ${n}`)]
  const log = new SessionLog(Date.now())
  log.prompt('כמה קבצים יש כאן?')
  log.text(
    'agent_message_chunk',
    `יש כאן שלושה קבצים: \`ls -l\`\n\nThree files.\n\n${table.map((row) => `| ${row.join(' | ')} |`).join('\n')}`,
  )
  log.end('completed')
  service.add('s_rtl', 'קבצים', log)
  const page = await signedIn({ sessionId: 's_rtl' })
  const direction = (where: string) =>
    page
      .locator(where)
      .first()
      .evaluate((element) => getComputedStyle(element).direction)
  expect(await direction('[data-testid=message-user] [dir]')).toBe('rtl')
  expect(await direction('.prose p')).toBe('rtl')
  expect(await direction('.prose p:nth-of-type(2), .prose > :nth-child(2) p')).toBe('ltr')
  expect(await direction('.prose code')).toBe('ltr')
  await page.getByTestId('composer').fill('שלום')
  expect(await direction('[data-testid=composer]')).toBe('rtl')
  const scrolls = page.locator('.prose .md-table')
  expect(await scrolls.evaluate((box) => box.scrollWidth > box.clientWidth)).toBe(true)
  expect(
    await page
      .locator('.prose td')
      .first()
      .evaluate((cell) => cell.clientHeight),
  ).toBeLessThan(40)
  expect(await lookAt(page, 'right-to-left')).toEqual([])
})

describe('the larger image of the sandboxes', () => {
  test('that it is being built is said until it is there, and that it could not be', async () => {
    service.fullImage = 'building'
    const page = await signedIn()
    await page.clock.install()
    await page.reload()
    const note = page.getByTestId('full-image')
    await note.getByText('are being installed').waitFor()
    service.fullImage = undefined
    await page.clock.runFor(16_000)
    await note.waitFor({ state: 'detached' })
    service.fullImage = 'failed'
    await page.reload()
    await note.getByText('couldn’t be installed').waitFor()
    service.fullImage = undefined
  })
})

describe('a conversation', () => {
  test('an idea of the empty chat is sent at once, and what is typed stays', async () => {
    service.onChat = (sessionId, log) => service.emit(sessionId, [log.end('completed')])
    const page = await signedIn()
    await page.getByTestId('composer').fill('half a thought')
    await page.getByRole('button', { name: /Take the tour/ }).click()
    await page
      .getByTestId('message-user')
      .getByText(/Show me what you can do/)
      .waitFor()
    await page.waitForURL(/\/s\//)
    expect(await page.getByTestId('composer').inputValue()).toBe('half a thought')
  })

  test('a message is sent with Enter, streams back, and the session is in the list', async () => {
    service.onChat = (sessionId, log) => {
      service.emit(sessionId, [log.liveText('m_a', 0, 'Here are **three')])
      setTimeout(() => {
        service.emit(sessionId, [log.liveText('m_a', 16, ' words**.')])
        service.emit(sessionId, [
          log.text('agent_message_chunk', 'Here are **three words**.', 'm_a'),
          log.end('completed'),
        ])
        service.change(sessionId, { running: false })
      }, 300)
    }
    const page = await signedIn()
    const composer = page.getByTestId('composer')
    await composer.fill('first line')
    await composer.press('Shift+Enter')
    await composer.pressSequentially('second line')
    await composer.press('Enter')
    await page.waitForURL(/\/s\/s_/)
    await page.getByTestId('message-user').waitFor()
    expect(await page.getByTestId('message-user').allTextContents()).toEqual(['You: first line\nsecond line'])
    await page.getByTestId('message-assistant').getByText('three words').waitFor()
    expect(await page.locator('[data-testid=message-assistant] strong').textContent()).toBe('three words')
    await until(async () => expect(await page.getByTestId('stop').count()).toBe(0))
    const item = page.getByTestId('session-item').filter({ hasText: 'first line' })
    expect(await item.getAttribute('data-running')).toBe('false')
    expect(frames('ai_chat')).toMatchObject([{ text: 'first line\nsecond line', whenBusy: 'steer' }])
    expect(await composer.inputValue()).toBe('')
  })

  test('drafts are kept for each session, also across a reload', async () => {
    const page = await signedIn({ sessionId: 's_fixed' })
    await page.getByTestId('composer').fill('unfinished thought')
    await page
      .getByTestId('session-item')
      .filter({ hasText: 'What is in my workspace' })
      .getByRole('link')
      .click()
    await page.getByTestId('prompt-end').waitFor()
    expect(await page.getByTestId('composer').inputValue()).toBe('')
    await page.goto(`${url()}/s/s_fixed`)
    await page.getByTestId('message-user').first().waitFor()
    expect(await page.getByTestId('composer').inputValue()).toBe('unfinished thought')
  })

  test('an input method’s Enter does not send', async () => {
    const page = await signedIn()
    const composer = page.getByTestId('composer')
    await composer.fill('にほん')
    await composer.evaluate((field) => {
      const init = { key: 'Enter', bubbles: true, cancelable: true, isComposing: true }
      field.dispatchEvent(new KeyboardEvent('keydown', init))
    })
    await composer.press('Enter')
    await until(() => expect(frames('ai_chat')).toHaveLength(1))
  })

  test('Stop works before the first token, after a reload, and from another tab', async () => {
    const page = await signedIn()
    service.answering = false
    await page.getByTestId('composer').fill('never answered')
    await page.keyboard.press('Enter')
    await page.getByTestId('activity').getByText('Sending…').waitFor()
    await page.keyboard.press('Escape')
    await page.getByTestId('activity').getByText('Stopping…').waitFor()
    service.answering = true
    await page.reload()
    await until(() => expect(frames('ai_chat_cancel')).toHaveLength(1))

    await openChat(page, 's_build')
    const other = await page.context().newPage()
    await other.goto(`${url()}/s/s_build`)
    await other.getByTestId('message-user').first().waitFor()
    await other.getByTestId('stop').click()
    await until(() => expect(frames('ai_chat_cancel').at(-1)).toMatchObject({ sessionId: 's_build' }))
    const log = service.sessions.get('s_build')?.log
    if (log === undefined) throw new Error('no story')
    service.emit('s_build', [
      log.outcome('c_build', { status: 'failed', rawOutput: { forModel: '' } }, { reason: 'cancelled' }),
      log.end('cancelled'),
    ])
    for (const tab of [page, other]) {
      await tab.locator('[data-testid=prompt-end][data-reason=cancelled]').waitFor()
      expect(await card(tab, 'c_build').getAttribute('data-status')).toBe('failed')
      expect(await tab.getByTestId('stop').count()).toBe(0)
    }
  })

  test('an error says what happened, and “Try again” sends the same words', async () => {
    const page = await signedIn({ sessionId: 's_error' })
    const end = page.getByTestId('prompt-end')
    expect(await end.textContent()).toContain('refused the API key (401)')
    await end.getByRole('button', { name: 'Copy request id' }).click()
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe('req_011CTq8mK2vYbN4sDfGhJkLp')
    await page.getByRole('button', { name: 'Try again' }).click()
    await until(() =>
      expect(frames('ai_chat')).toMatchObject([{ text: 'What is in my workspace?', sessionId: 's_error' }]),
    )
    await page.getByTestId('activity').getByText('Thinking…').waitFor()
  })

  test('calls are seen while the model writes them, and give way to their cards', async () => {
    const page = await signedIn({ sessionId: 's_writes' })
    const [write, shell] = [page.getByTestId('draft-card').nth(0), page.getByTestId('draft-card').nth(1)]
    await expect.poll(() => write.innerText()).toMatch(/write_file\s*site\/prices\.html/)
    expect(await write.locator('pre').innerText()).toContain('<li data-plan="89">Plan 89: 1068 €</li>')
    expect(await shell.innerText()).toMatch(/run_shell_command\s*ls -la site\/ol/)
    expect(await page.getByTestId('tool-card').count()).toBe(0)
    const { log } = service.sessions.get('s_writes') ?? {}
    if (log === undefined) throw new Error('the story is not there')
    service.emit('s_writes', [
      log.text('agent_message_chunk', 'I write the page and look for the old one.', 'm_2'),
    ])
    await expect.poll(() => page.getByTestId('draft-card').count()).toBe(0)
  })

  test('the connection is lost: it is said, a message waits, and goes out once as the same one', async () => {
    const page = await signedIn({ sessionId: 's_fixed' })
    service.drop({ refusing: true })
    await page.getByTestId('connection-state').getByText('Connection lost').waitFor()
    await page.getByTestId('composer').fill('meanwhile')
    await page.keyboard.press('Enter')
    await page.getByText('Will be sent when you’re back online').waitFor()
    expect(await lookAt(page, 'offline')).toEqual([])
    service.accept()
    await page.evaluate("window.dispatchEvent(new Event('online'))")
    await until(async () => expect(await page.locator('[data-pending]').count()).toBe(0))
    expect(await page.getByTestId('message-user').last().textContent()).toContain('meanwhile')
    expect(frames('ai_chat')).toHaveLength(1)
    await page.getByTestId('connection-state').getByText('Connection lost').waitFor({ state: 'detached' })
  })

  test('the mode is changed for one session, and shown in all tabs', async () => {
    const page = await signedIn({ sessionId: 's_fixed' })
    await page.getByTestId('mode').click()
    await page.getByRole('menuitemradio', { name: /Manual/ }).click()
    await until(() =>
      expect(frames('ai_chat_mode')).toMatchObject([{ sessionId: 's_fixed', modeId: 'manual' }]),
    )
    service.change('s_fixed', { mode: 'manual' })
    await page.locator('[data-testid=mode][data-mode=manual]').waitFor()
  })

  test('a chat is deleted at the latest when the page goes, and a chat that is gone says so', async () => {
    const page = await signedIn({ sessionId: 's_error' })
    const item = page.locator('[data-session-id=s_error]')
    await item.hover()
    await item.getByRole('button', { name: /Options for/ }).click()
    await page.getByRole('menuitem', { name: 'Delete chat' }).click()
    await page.getByRole('heading', { name: /What are we doing today/ }).waitFor()
    await page.goto('about:blank')
    await until(() => expect(service.sessions.has('s_error')).toBe(false))
    // The page looks it up, and the browser complains of that in its own time, or not at all.
    page.removeAllListeners('console')
    await page.goto(`${url()}/s/s_error`)
    await page.getByRole('heading', { name: 'Chat not found' }).waitFor()
  })
})

describe('tool cards', () => {
  test('the whole command, live coloured output, and nothing of what it tries beyond', async () => {
    const page = await signedIn({ sessionId: 's_build' })
    const running = card(page, 'c_build')
    expect(await running.getAttribute('data-status')).toBe('in_progress')
    expect(await running.getByTestId('tool-command').textContent()).toContain('tee "build-$package.log"')
    await running.getByRole('timer').waitFor()
    const output = running.getByTestId('tool-output')
    const text = (await output.textContent()) ?? ''
    expect(text).toContain('transforming (481)')
    expect(text).not.toContain('transforming (212)')
    expect(text).not.toContain('hacked')
    expect(await output.locator('a').count()).toBe(0)
    expect(await output.locator('.t-fg-2').first().textContent()).toBe('building for production...')
    expect(await page.title()).toContain('Build and sum up warnings')
    const log = service.sessions.get('s_build')?.log
    if (log === undefined) throw new Error('no story')
    // The live output skips ahead; what it skipped is fetched from what is stored.
    const shown = log.live.at(-1)?._meta.sandlot.output?.end ?? 0
    const skipped = 'skipped in the live output\n'
    service.outputs.set('c_build', Buffer.from('.'.repeat(shown) + skipped))
    service.emit('s_build', [log.output('c_build', shown + skipped.length, 'one more line\n')])
    await output.getByText('skipped in the live output').waitFor()
    await output.getByText('one more line').waitFor()
    await running.getByRole('button', { name: /Cancel/ }).click()
    await until(() => expect(frames('ai_chat_cancel')).toMatchObject([{ toolCallId: 'c_build' }]))
  })

  test('done is folded, failed stays open with its reason, a long output leads to all of it', async () => {
    const page = await signedIn({ sessionId: 's_fixed' })
    expect(await card(page, 'c_read').getByRole('button').first().getAttribute('aria-expanded')).toBe('false')
    expect(await card(page, 'c_test').textContent()).toContain('Exit 1')
    // It is far above the end, where a chat opens: its output is fetched once it comes near.
    await card(page, 'c_test').scrollIntoViewIfNeeded()
    await card(page, 'c_test').getByText('test_one_is_not_prime').waitFor()
    expect(await card(page, 'c_slow').textContent()).toContain('It hit its time limit')
    const long = card(page, 'c_long')
    await long.getByRole('button').first().click()
    await long.getByText('not shown').waitFor({ state: 'attached' })
    expect(await long.textContent()).toContain('The model saw the beginning and the end.')
    const link = long.getByRole('link', { name: 'Show full output' })
    expect(await link.getAttribute('href')).toBe('/api/sessions/s_fixed/outputs/c_long')
    expect(await long.getByRole('link', { name: 'Download' }).getAttribute('href')).toContain('?download=1')
    const edit = card(page, 'c_edit')
    await edit.getByRole('button').first().click()
    expect(await edit.locator('.diff-line.add').count()).toBe(3)
    expect(await edit.locator('.diff-line.del').count()).toBe(1)
    // The diff's content is not shown again as an argument.
    expect(await edit.getByText('old_text').count()).toBe(0)
  })

  test('the model’s markdown runs nothing, and its code can be copied', async () => {
    const page = await signedIn({ sessionId: 's_fixed' })
    await page.getByText('<script>window.hacked').waitFor()
    expect(await page.evaluate('window.hacked')).toBeUndefined()
    expect(await page.locator('[data-testid=message-assistant] img').count()).toBe(0)
    await page.getByRole('button', { name: 'Copy code' }).click()
    expect(await page.evaluate('navigator.clipboard.readText()')).toContain('for d in range(2')
  })

  test('approvals: nothing hidden, answered by the option’s id, by mouse and by keys, one and all', async () => {
    const page = await signedIn({ sessionId: 's_approve' })
    expect(await page.title()).toMatch(/^\(4\) Approval needed/)
    const first = card(page, 'c_rm')
    expect(await first.getByTestId('tool-command').textContent()).toContain('U+202E')
    // A waiting call is never folded.
    expect(await first.getByRole('button', { name: 'Remove build folders' }).count()).toBe(0)
    const buttons = first.getByTestId('approval').getByRole('button')
    expect(await buttons.evaluateAll((all) => all.map((one) => one.ariaLabel ?? one.textContent))).toEqual([
      '1 more reason',
      expect.stringContaining('Allow'),
      expect.stringContaining('Deny'),
      'Edit',
      'More options',
    ])
    const reasons = first.getByTestId('approval-why')
    expect(await reasons.innerText()).toMatch(/rm -rf \{\} deletes without asking\.\s+1 more reason$/)
    await reasons.getByRole('button').click()
    expect(await reasons.innerText()).toMatch(/U\+202E/)
    const second = card(page, 'c_push')
    // The command stands there once.
    expect(((await second.textContent()) ?? '').split('git push origin main')).toHaveLength(2)
    await second.getByRole('button', { name: 'More options' }).click()
    await page.getByRole('menuitem').first().waitFor()
    expect(await page.getByRole('menuitem').allInnerTexts()).toEqual([
      expect.stringMatching(/^Allow for this chat\s+commands that begin with git push$/),
      expect.stringMatching(/^Always allow\s+commands that begin with git push$/),
      expect.stringMatching(/^Always allow\s+exactly git push origin main$/),
      'Deny and explain…',
    ])
    await page.keyboard.press('Escape')
    // While the menu closes, keys are still the menu's.
    await page.getByRole('menuitem').first().waitFor({ state: 'hidden' })
    await page.keyboard.press('Control+Alt+Enter')
    await first.getByRole('button', { name: 'More options' }).click()
    await page.getByRole('menuitem', { name: 'Deny and explain…' }).click()
    await first.getByLabel('What to do instead').fill('keep dist')
    await page.keyboard.press('Enter')
    await page.getByTestId('approval-bar').getByRole('button', { name: 'Allow all once' }).click()
    await page.keyboard.press('Control+Alt+Shift+Backspace')
    await until(() =>
      expect(frames('ai_chat_approve')).toMatchObject([
        { toolCallId: 'c_rm', optionId: 'once' },
        { toolCallId: 'c_rm', optionId: 'no', reason: 'keep dist' },
        { toolCallId: 'c_rm', optionId: 'once' },
        { toolCallId: 'c_push', optionId: 'once' },
        { toolCallId: 'c_rm', optionId: 'no' },
        { toolCallId: 'c_push', optionId: 'no' },
      ]),
    )
    const log = service.sessions.get('s_approve')?.log
    if (log === undefined) throw new Error('no story')
    service.emit('s_approve', [
      log.happened({
        type: 'approval_answered',
        toolCallId: 'c_rm',
        allowed: false,
        by: 'user',
        optionId: 'no',
        reason: 'keep dist',
      }),
      log.outcome('c_rm', { status: 'failed', rawOutput: { forModel: '' } }, { reason: 'denied' }),
    ])
    service.change('s_approve', { waiting: 1 })
    // Refused is grey, and folded.
    await until(async () => expect(await first.getAttribute('data-phase')).toBe('stopped'))
    await first.getByRole('button', { expanded: false }).click()
    await first.getByText('You denied this. Nothing ran.').waitFor()
    expect(await page.getByTestId('approval-bar').count()).toBe(0)
    await until(async () => expect(await page.title()).toMatch(/^\(3\)/))
  })
})

test('questions: a choice, own words, a form, and what runs in the background', async () => {
  const page = await signedIn({ sessionId: 's_ask' })
  await card(page, 'c_dev').getByText('In the background').waitFor()
  await card(page, 'c_test').getByText('Exit 1').waitFor()
  // A question is no request for leave: nothing answers several of them at once, and no key does.
  expect(await page.getByTestId('approval-bar').count()).toBe(0)
  await page.keyboard.press('Control+Alt+Enter')
  const form = card(page, 'c_form').getByTestId('question')
  expect(await form.getByRole('button', { name: 'Answer' }).isDisabled()).toBe(true)
  await form.getByLabel('Version').fill('1.2.0')
  await form.getByLabel('Channel').selectOption('beta')
  await form.getByLabel('cli').check()
  await form.getByLabel('Only try it').check()
  await form.getByRole('button', { name: 'Answer' }).click()
  await card(page, 'c_name').getByRole('button', { name: 'Rename them to kebab-case' }).click()
  await until(() =>
    expect(frames('ai_chat_approve')).toMatchObject([
      {
        toolCallId: 'c_form',
        optionId: 'answer',
        content: { version: '1.2.0', channel: 'beta', parts: ['cli'], dry: true },
      },
      { toolCallId: 'c_name', optionId: 'choice_2' },
    ]),
  )
})

test('autoscroll follows, pauses when the reader scrolls up, and comes back', async () => {
  const page = await signedIn({ sessionId: 's_fixed' })
  const region = page.getByRole('group', { name: 'Messages' })
  const distance = () =>
    region.evaluate((element) => element.scrollHeight - element.scrollTop - element.clientHeight)
  await until(async () => expect(await distance()).toBeLessThan(8))
  await region.hover()
  await page.mouse.wheel(0, -600)
  await page.getByRole('button', { name: 'Jump to latest' }).waitFor()
  const log = service.sessions.get('s_fixed')?.log
  if (log === undefined) throw new Error('no story')
  const before = await region.evaluate((element) => element.scrollTop)
  service.emit('s_fixed', [...log.prompt('more'), log.liveText('m_more', 0, 'word '.repeat(800))])
  await page.getByText('word word').waitFor({ state: 'attached' })
  expect(await region.evaluate((element) => element.scrollTop)).toBe(before)
  await page.getByRole('button', { name: 'Jump to latest' }).click()
  await until(async () => expect(await distance()).toBeLessThan(8))
  service.emit('s_fixed', [log.liveText('m_more', 4000, 'last '.repeat(800))])
  await page.getByText('last last').waitFor()
  await until(async () => expect(await distance()).toBeLessThan(8))
})

test('the keyboard alone: new chat, sidebar, settings, focus', async () => {
  const page = await signedIn({ sessionId: 's_fixed' })
  await page.keyboard.press('Control+Shift+S')
  await until(async () => expect(await page.getByTestId('session-item').count()).toBe(0))
  await page.keyboard.press('Control+Shift+S')
  await page.getByTestId('session-item').first().waitFor()
  await page.keyboard.press('Control+.')
  await page.getByRole('heading', { name: 'Settings' }).waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('heading', { name: 'Settings' }).waitFor({ state: 'detached' })
  await page.keyboard.press('Shift+Escape')
  expect(await page.evaluate('document.activeElement.id')).toBe('composer')
  await page.keyboard.press('Control+Shift+O')
  await page.getByRole('heading', { name: /What are we doing today/ }).waitFor()
})

test('a new chat goes on from a message: the button leads there, and this chat stays', async () => {
  const page = await signedIn({ sessionId: 's_fixed' })
  await page.getByTestId('message-user').first().hover()
  await page.getByRole('button', { name: 'Continue from here in a new chat' }).first().click()
  await page.locator('[data-session-page=s_fixed_fork]').waitFor()
  expect(new URL(page.url()).pathname).toBe('/s/s_fixed_fork')
  await page.getByTestId('message-user').first().waitFor()
})

test('what was said is copied', async () => {
  const page = await signedIn({ sessionId: 's_fixed' })
  const message = page.getByTestId('message-user').first()
  const words = await message.getByText(/./).last().innerText()
  await message.hover()
  await message.getByRole('button', { name: 'Copy your message' }).click()
  expect(await page.evaluate('navigator.clipboard.readText()')).toBe(words)
})

test('nothing moves when a prompt ends', async () => {
  const page = await signedIn({ sessionId: 's_build' })
  const topOf = async (id: string) => (await page.getByTestId(id).first().boundingBox())?.y ?? Number.NaN
  const below = async () => (await topOf('tool-card')) - (await topOf('message-user'))
  const log = service.sessions.get('s_build')?.log
  const before = await below()
  expect(before).toBeGreaterThan(0)
  if (log !== undefined) service.emit('s_build', [log.end('completed')])
  await page.getByTestId('message-user').first().hover()
  await page.getByRole('button', { name: 'Continue from here in a new chat' }).first().waitFor()
  expect(await below()).toBe(before)
})

test('a chat is found by its name, by the keyboard alone', async () => {
  const page = await signedIn()
  const titles = async () =>
    (await page.getByTestId('session-item').getByRole('link').allInnerTexts()).map(
      (text) => text.split('\n')[0],
    )
  await page.getByTestId('session-item').first().waitFor()
  const all = await titles()
  await page.getByRole('searchbox').focus()
  await page.keyboard.type('WORKSPACE')
  await until(async () => expect(await titles()).toEqual(['What is in my workspace?']))
  expect(await lookAt(page, 'found')).toEqual([])
  await page.keyboard.type('s of others')
  await page.getByText('No results.').waitFor()
  await page.keyboard.press('Escape')
  await until(async () => expect(await titles()).toEqual(all))
  expect(frames('ai_chat_cancel')).toEqual([])
})

test('a chat that was found is gone when it is deleted', async () => {
  const page = await signedIn()
  await page.getByRole('searchbox').focus()
  await page.keyboard.type('workspace')
  const item = page.getByTestId('session-item')
  await until(async () => expect(await item.count()).toBe(1))
  await item.hover()
  await item.getByRole('button', { name: /Options for/ }).click()
  await page.getByRole('menuitem', { name: 'Delete chat' }).click()
  await page.getByText('No results.').waitFor()
})

test('what was found on one page goes on with the next one', async () => {
  service.pageSize = 2
  const page = await signedIn()
  await page.getByRole('searchbox').focus()
  await page.keyboard.type('e')
  const items = page.getByTestId('session-item')
  await until(async () => expect(await page.getByRole('region', { name: 'Found' }).count()).toBe(1))
  const all = [...service.sessions.values()].filter(({ title }) => title?.toLowerCase().includes('e')).length
  expect(all).toBeGreaterThan(4)
  for (let shown = 2; shown < all; shown += 2) {
    await until(async () => expect(await items.count()).toBe(shown))
    await page.getByRole('button', { name: 'Show older chats' }).click()
  }
  await until(async () => expect(await items.count()).toBe(all))
  expect(await page.getByRole('button', { name: 'Show older chats' }).count()).toBe(0)
})

test('who opens the search and looks for nothing leaves it, and stops nothing, with Escape', async () => {
  const page = await signedIn({ sessionId: 's_build' })
  const field = page.getByRole('searchbox')
  await field.focus()
  await until(async () => expect(await field.evaluate((one) => one === document.activeElement)).toBe(true))
  await page.keyboard.press('Escape')
  expect(await field.evaluate((one) => one === document.activeElement)).toBe(false)
  expect(await page.getByRole('button', { name: 'Stop', exact: true }).isEnabled()).toBe(true)
  await page.keyboard.press('Escape')
  await until(() => expect(frames('ai_chat_cancel')).toHaveLength(1))
})

test('a chat is renamed and saved as Markdown', async () => {
  const page = await signedIn({ sessionId: 's_fixed' })
  const menu = async (item: string) => {
    await page.getByRole('button', { name: 'Chat options' }).click()
    await page.getByRole('menuitem', { name: item }).click()
  }
  await menu('Rename…')
  const dialog = page.getByRole('dialog', { name: 'Rename this chat' })
  await dialog.getByLabel('Name').fill('Primes: “हिन्दी?”')
  await page.keyboard.press('Enter')
  await dialog.waitFor({ state: 'detached' })
  await page.getByTestId('session-title').getByText('Primes: “हिन्दी?”').waitFor()
  const [download] = await Promise.all([page.waitForEvent('download'), menu('Save as Markdown')])
  expect(download.suggestedFilename()).toBe('Primes हिन्दी.md')
  const text = await readFile(await download.path(), 'utf8')
  expect(text).toMatch(/^# Primes: “हिन्दी\?”\n\n## Ada Lovelace\n\n/)
  expect(text).toContain('**Edit primes.py** (Done)')
})

test('a chat is renamed from the list, where another is open', async () => {
  const page = await signedIn({ sessionId: 's_build' })
  const row = page.locator('[data-session-id="s_fixed"]')
  await row.hover()
  await row.getByRole('button', { name: /^Options for/ }).click()
  await page.getByRole('menuitem', { name: 'Rename…' }).click()
  await page.getByRole('dialog', { name: 'Rename this chat' }).getByLabel('Name').fill('Primes, mended')
  await page.keyboard.press('Enter')
  await row.getByText('Primes, mended').waitFor()
})

test('what can be done with the last answer is shown without a pointer over it', async () => {
  const page = await signedIn({ sessionId: 's_fixed' })
  const copy = page.getByTestId('message-assistant').last().getByRole('button', { name: 'Copy message' })
  await until(async () => expect(await copy.evaluate((one) => getComputedStyle(one).opacity)).toBe('1'))
  const own = page.getByTestId('message-user').last().getByRole('button', { name: 'Copy your message' })
  expect(await own.evaluate((one) => getComputedStyle(one).opacity)).toBe('0')
})

test('a chat of one’s own can be shared beside its name', async () => {
  const page = await signedIn({ sessionId: 's_fixed' })
  await page.getByRole('button', { name: 'Share', exact: true }).click()
  await page.getByRole('dialog', { name: /share/i }).waitFor()
})

test('the frame of the composer is whole while nothing stands above it', async () => {
  const page = await signedIn()
  const frame = page.locator('.composer')
  expect(await frame.evaluate((one) => getComputedStyle(one).borderTopLeftRadius)).not.toBe('0px')
  expect(await page.locator('.above-composer').evaluate((one) => one.getBoundingClientRect().height)).toBe(0)
})

test('the keys are listed, and a chat that needs somebody tells them when they look elsewhere', async () => {
  const page = await signedIn()
  await page.keyboard.press('Control+/')
  const keys = page.getByRole('dialog', { name: 'Keyboard' })
  await keys.getByText('Allow all waiting calls once').waitFor()
  expect(await lookAt(page, 'keys')).toEqual([])
  await page.keyboard.press('Escape')
  await keys.waitFor({ state: 'detached' })

  // The browser's own part, as far as a page sees it: headless ones show nothing.
  await page.evaluate(`{
    window.shown = []
    window.Notification = class extends EventTarget {
      static permission = 'default'
      static requestPermission() { this.permission = 'granted'; return Promise.resolve('granted') }
      constructor(title, { body }) { super(); window.shown.push([title, body]) }
      close() {}
    }
    window.looking = true
    document.hasFocus = () => window.looking
  }`)
  const shown = () => page.evaluate('window.shown')
  service.change('s_build', { waiting: 1 })
  await page.getByTestId('session-item').getByText('Approve').first().waitFor()
  await page.keyboard.press('Control+.')
  await page.getByRole('link', { name: 'Notifications' }).click()
  const wanted = page.getByLabel('When a chat needs you or finishes while you’re elsewhere')
  await wanted.check()
  const sample = ['Notifications are on', 'Notifications will look like this.']
  await until(async () => expect(await shown()).toEqual([sample]))
  service.change('s_build', { waiting: 2 })
  await until(async () => expect(await page.title()).toContain('(6)'))
  expect(await shown()).toEqual([sample])
  await page.evaluate('window.looking = false')
  const title = service.sessions.get('s_build')?.title
  service.change('s_build', { waiting: 3 })
  await until(async () => expect(await shown()).toEqual([sample, ['Sandlot needs you', title]]))
  service.change('s_build', { waiting: 0 })
  service.change('s_build', { running: false })
  await until(async () =>
    expect(await shown()).toEqual([sample, ['Sandlot needs you', title], ['Sandlot is done', title]]),
  )
  await wanted.uncheck()
  service.change('s_build', { waiting: 1 })
  await until(async () => expect(await page.title()).toContain('(5)'))
  expect(await shown()).toHaveLength(3)
})

test('a sound says that a chat needs somebody who looks elsewhere, where they want one', async () => {
  const page = await signedIn()
  await page.evaluate(`{
    window.sounds = 0
    const to = { connect: () => to, gain: { setValueAtTime() {}, exponentialRampToValueAtTime() {} } }
    window.AudioContext = class {
      currentTime = 0
      resume() { return Promise.resolve() }
      createGain() { return to }
      createOscillator() { return { ...to, frequency: {}, start: () => window.sounds++, stop() {} } }
    }
    window.looking = true
    document.hasFocus = () => window.looking
  }`)
  const sounds = () => page.evaluate('window.sounds')
  await page.keyboard.press('Control+.')
  await page.getByRole('link', { name: 'Notifications' }).click()
  await page.getByLabel('Play a sound when a chat needs you or finishes').check()
  expect(await sounds()).toBe(1)
  service.change('s_build', { waiting: 1 })
  await until(async () => expect(await page.title()).toContain('(5)'))
  expect(await sounds()).toBe(1)
  await page.evaluate('window.looking = false')
  service.change('s_build', { waiting: 2 })
  await until(async () => expect(await sounds()).toBe(2))
})

test('a chat that is being loaded is neither new nor without changes', async () => {
  const page = await signedIn()
  service.answering = false
  // Not in the list, so its name comes with it.
  service.pageSize = 0
  await page.goto(`${url()}/s/s_fixed`)
  await page.getByText('Loading…').first().waitFor()
  await page.getByRole('button', { name: 'Workspace', exact: true }).click()
  await page.getByRole('tab', { name: 'Changes' }).click()
  await page.getByRole('tabpanel').getByText('Loading…').waitFor()
  expect(await page.getByTestId('session-title').innerText()).not.toBe('New chat')
})

test('a prompt’s record and a call’s whole output are saved as files', async () => {
  const page = await signedIn({ sessionId: 's_fixed' })
  const saved = async (link: Locator) => {
    const [download] = await Promise.all([page.waitForEvent('download'), link.click()])
    const text = await readFile(await download.path(), 'utf8')
    return { name: download.suggestedFilename(), text }
  }
  await page.getByTestId('message-user').first().hover()
  const record = await saved(page.getByRole('link', { name: 'Download record' }).first())
  expect(record).toEqual({ name: 'prompt-p_1.json', text: JSON.stringify({ version: 1, promptId: 'p_1' }) })
  const long = card(page, 'c_long')
  await long.getByRole('button').first().click()
  const output = await saved(long.getByRole('link', { name: 'Download' }))
  expect(output.name).toBe('c_long.txt')
  expect(output.text).toBe(service.outputs.get('c_long')?.toString('utf8'))
})
