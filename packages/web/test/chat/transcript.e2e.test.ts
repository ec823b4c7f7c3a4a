/** Long conversations: what is drawn of them, and how still they are. */
import type { JSHandle, Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { SessionLog } from '../fixture/session-log.ts'
import { DESKTOP, PHONE, card, lookAt, until, usePages, oneLook } from '../fixture/pages.ts'

const { complaints, service, url, signedIn, openChat, frames } = usePages()

/** `calls` of different kinds, so that none are folded together, in prompts of 40. */
function manyCalls(calls: number): SessionLog {
  const log = new SessionLog()
  for (let at = 0; at < calls; at++) {
    if (at % 40 === 0) log.prompt(`Step ${at / 40}, please.`)
    const toolCallId = `c_${at}`
    const kind = at % 2 === 0 ? 'execute' : 'read'
    log.call({ toolCallId, title: `echo ${at}`, name: 'a_tool', kind, rawInput: { command: `echo ${at}` } })
    log.started(toolCallId)
    log.outcome(toolCallId, { status: 'completed', rawOutput: { forModel: `${at}` } })
    if (at % 40 === 39) {
      log.text('agent_message_chunk', `Done with step ${Math.floor(at / 40)}.`)
      log.end('completed')
    }
  }
  return log
}

/** Messages of many heights. */
function manyMessages(prompts: number): SessionLog {
  const log = new SessionLog()
  for (let at = 0; at < prompts; at++) {
    log.prompt(`Question ${at}`)
    const lines = Array.from({ length: 1 + ((at * 7) % 13) }, (_, line) => `Line ${line} of answer ${at}.`)
    log.text('agent_message_chunk', lines.join('\n\n'))
    log.end('completed')
  }
  return log
}

const nodes = (page: Page) => page.evaluate(() => document.getElementsByTagName('*').length)
const region = (page: Page) => page.getByRole('group', { name: 'Messages' })
const scrollTo = (page: Page, share: number) =>
  region(page).evaluate((element, to) => {
    element.scrollTop = to * element.scrollHeight
  }, share)

test('a chat of 2,800 calls keeps few nodes, wherever one reads, and opens at its end', async () => {
  service.add('s_calls', 'Many calls', manyCalls(2_800))
  const page = await signedIn()
  await page.goto(`${url()}/s/s_calls`)
  await card(page, 'c_2799').waitFor()
  await until(async () => expect(await nodes(page)).toBeLessThan(5_000))
  for (const share of [0.75, 0.5, 0.2, 0]) {
    await scrollTo(page, share)
    await until(async () => {
      expect(await region(page).locator('[data-call-id]').first().isVisible()).toBe(true)
      expect(await nodes(page)).toBeLessThan(5_000)
    })
  }
  await page.getByText('Step 0, please.').waitFor()
  // Its place is kept while the end is not drawn.
  expect(await card(page, 'c_1400').count()).toBe(0)
})

test('what is read stays where it is while what stands above it gets its height', async () => {
  service.add('s_messages', 'Many messages', manyMessages(300))
  const page = await signedIn({ sessionId: 's_messages' })
  await page.getByText('Line 0 of answer 299.').waitFor()
  await scrollTo(page, 0.5)
  await until(async () => expect(await region(page).locator('[data-entry]').count()).toBeGreaterThan(20))
  const row = () =>
    region(page).evaluateHandle((element) => {
      const middle = element.getBoundingClientRect().top + element.clientHeight / 2
      const rows = [...element.querySelectorAll('[data-entry]')]
      return rows.find((one) => one.getBoundingClientRect().bottom > middle) ?? element
    })
  const topOf = (element: JSHandle<Element>) => element.evaluate((one) => one.getBoundingClientRect().top)
  const frames = () => page.evaluate('new Promise((done) => setTimeout(done, 100))')
  await page.mouse.move(640, 300)
  // Up in steps: what comes in above is drawn while one reads.
  for (let step = 0; step < 12; step++) {
    await page.mouse.wheel(0, -400)
    await frames()
    const read = await row()
    const top = await topOf(read)
    await frames()
    expect(Math.abs((await topOf(read)) - top)).toBeLessThan(2)
  }
})

test('a link to a message and one to a call in a folded run lead there', async () => {
  service.add('s_messages', 'Many messages', manyMessages(300))
  const page = await signedIn({ sessionId: 's_messages' })
  await page.getByText('Line 0 of answer 299.').waitFor()
  await page.evaluate(() => location.assign('#m_21'))
  const found = page.locator('[data-entry=m_21]')
  await until(async () => expect(await found.isVisible()).toBe(true))
  await until(async () => {
    const box = await found.boundingBox()
    expect(box?.y).toBeGreaterThan(0)
    expect(box?.y).toBeLessThan(800)
  })
  expect(await found.evaluate((element) => element === document.activeElement)).toBe(true)

  // The end is not taken back.
  await page.evaluate('new Promise((done) => setTimeout(done, 300))')
  expect(await found.isVisible()).toBe(true)

  await page.goto(`${url()}/s/s_receipts`)
  const run = page.getByTestId('call-run').first()
  await run.waitFor()
  const log = service.sessions.get('s_receipts')?.log
  const call = log?.settled.find((event) => event.sessionUpdate === 'tool_call' && event.kind === 'execute')
  const callId = call?.sessionUpdate === 'tool_call' ? call.toolCallId : ''
  await page.evaluate((id) => location.assign(`#${id}`), callId)
  await card(page, callId).waitFor()
})

test('what was opened is open when one comes back to it', async () => {
  service.add('s_calls', 'Many calls', manyCalls(400))
  const page = await signedIn()
  await page.goto(`${url()}/s/s_calls`)
  const toggle = card(page, 'c_399').getByRole('button').first()
  await toggle.click()
  await scrollTo(page, 0)
  await page.getByText('Step 0, please.').waitFor()
  await card(page, 'c_0').getByRole('button').first().click()
  await page.getByTestId('composer').focus()
  await scrollTo(page, 1)
  await toggle.waitFor()
  await until(async () => expect(await card(page, 'c_0').count()).toBe(0))
  expect(await toggle.getAttribute('aria-expanded')).toBe('true')
  await scrollTo(page, 0)
  await until(async () =>
    expect(await card(page, 'c_0').getByRole('button').first().getAttribute('aria-expanded')).toBe('true'),
  )
})

test('the end is followed while an answer grows, also in a long chat', async () => {
  const log = manyMessages(150)
  service.add('s_messages', 'Many messages', log)
  const page = await signedIn({ sessionId: 's_messages' })
  await openChat(page, 's_messages')
  service.onChat = (sessionId, own) => {
    let offset = 0
    for (let line = 0; line < 60; line++) {
      const text = `Written line ${line}.\n\n`
      service.emit(sessionId, [own.liveText('m_live', offset, text)])
      offset += text.length
    }
  }
  await page.getByTestId('composer').fill('Write.')
  await page.keyboard.press('Enter')
  const last = page.getByText('Written line 59.')
  await last.waitFor()
  await until(async () => expect((await last.boundingBox())?.y).toBeLessThan(700))
})

/** Two questions with an answer each. */
function talked(): SessionLog {
  const log = new SessionLog()
  for (const [asked, answered] of [
    ['How many tests are there?', 'There are **42** tests in 7 files.'],
    ['Which of them is the slowest?', 'The slowest is `reconnect.test.ts`, with 3.4 s.'],
  ] as const) {
    log.prompt(asked)
    log.text('agent_message_chunk', answered)
    log.end('completed')
  }
  return log
}

const answers = (text: string) => (sessionId: string, log: SessionLog) => {
  service.emit(sessionId, [log.text('agent_message_chunk', text), log.end('completed')])
  service.change(sessionId, { running: false })
}

test('a message is said in other words in its place, by the keyboard, and one steps between the two', async () => {
  service.add('s_talk', 'Slow tests', talked())
  service.onChat = answers('The two slowest take 3.4 s and 2.9 s.')
  const page = await signedIn({ sessionId: 's_talk' })
  const last = page.getByTestId('message-user').last()
  await last.getByRole('button', { name: 'Edit and send again' }).focus()
  await page.keyboard.press('Enter')
  const field = page.getByRole('textbox', { name: 'Edit your message' })
  expect(await field.inputValue()).toBe('Which of them is the slowest?')
  await page.keyboard.press('Escape')
  await field.waitFor({ state: 'detached' })
  await last.getByRole('button', { name: 'Edit and send again' }).click()
  await field.fill('Which two are the slowest?')
  await page.keyboard.press('Enter')
  await page.getByText('3.4 s and 2.9 s').waitFor()
  expect(frames('ai_chat')).toMatchObject([{ text: 'Which two are the slowest?', follows: 'p_1' }])
  expect(await page.getByText('Which of them is the slowest?').count()).toBe(0)
  expect(await page.getByText('There are 42 tests').count()).toBe(1)

  const versions = page.getByRole('group', { name: 'Version 2 of 2' })
  await versions.getByRole('button', { name: 'Previous version' }).click()
  await page.getByText('reconnect.test.ts').waitFor()
  expect(await page.getByText('3.4 s and 2.9 s').count()).toBe(0)

  // The next message continues here, also after a reload.
  await page.reload()
  await page.getByText('reconnect.test.ts').waitFor()
  service.onChat = answers('It waits for a server.')
  await page.getByTestId('composer').fill('Why is it so slow?')
  await page.keyboard.press('Enter')
  await page.getByText('It waits for a server.').waitFor()
  expect(frames('ai_chat').at(-1)).toMatchObject({ text: 'Why is it so slow?', follows: 'p_2' })
  await page.getByRole('button', { name: 'Next version' }).click()
  await page.getByText('3.4 s and 2.9 s').waitFor()
  expect(await page.getByText('It waits for a server.').count()).toBe(0)
})

test('an answer is asked for again, with another model too; while the agent is at work, nothing is said anew', async () => {
  service.add('s_talk', 'Slow tests', talked())
  service.models = ['small', 'larger'].map((name) => ({ name, thoughtLevels: [], images: true }))
  service.demo = false
  const page = await signedIn({ sessionId: 's_talk' })
  service.onChat = () => undefined
  await page.getByText('reconnect.test.ts').hover()
  await page.getByRole('button', { name: 'Answer again', exact: true }).last().click()
  await page.getByTestId('activity').waitFor()
  await until(() =>
    expect(frames('ai_chat')).toMatchObject([{ text: 'Which of them is the slowest?', follows: 'p_1' }]),
  )
  const noButton = (name: string) =>
    until(async () => expect(await page.getByRole('button', { name, exact: true }).count()).toBe(0))
  await noButton('Edit and send again')
  await noButton('Answer again')

  // The other version may be read in between, with a note.
  await page.getByRole('button', { name: 'Previous version' }).click()
  await page.getByText('reconnect.test.ts').waitFor()
  await page.getByText('The agent is working in another branch of this chat.').waitFor()
  await page.getByRole('button', { name: 'Show it' }).click()
  await page.getByTestId('activity').waitFor()
  const log = service.sessions.get('s_talk')?.log
  if (log !== undefined) answers('It is `e2e.test.ts`.')('s_talk', log)
  await page.getByText('e2e.test.ts').waitFor()

  await page.getByText('e2e.test.ts').hover()
  await page.getByRole('button', { name: 'Answer again with another model' }).last().click()
  await page.getByRole('menuitem', { name: 'larger' }).click()
  await until(() => expect(frames('ai_chat').at(-1)).toMatchObject({ model: 'larger', follows: 'p_1' }))
})

test.each(
  oneLook('branches', [
    ['light', 'desktop', DESKTOP],
    ['dark', 'desktop', DESKTOP],
    ['light', 'phone', PHONE],
    ['dark', 'phone', PHONE],
  ] as const),
)('branches look right: %s, %s', async (theme, name, viewport) => {
  const log = talked()
  log.prompt('Which two are the slowest?', undefined, undefined, 'p_1')
  log.text(
    'agent_message_chunk',
    'The two slowest are `reconnect.test.ts` (3.4 s) and `disk.test.ts` (2.9 s).',
  )
  log.end('completed')
  service.add('s_talk', 'Slow tests', log)
  const page = await signedIn({ sessionId: 's_talk', theme, viewport, touch: viewport === PHONE })
  await page.getByRole('group', { name: 'Version 2 of 2' }).waitFor()
  if (viewport === DESKTOP) await page.getByText('(2.9 s)').hover()
  expect(await lookAt(page, `branches-${name}-${theme}`)).toEqual([])
  await page.getByRole('button', { name: 'Edit and send again' }).last().click()
  await page.getByRole('textbox', { name: 'Edit your message' }).waitFor()
  expect(await lookAt(page, `branches-edit-${name}-${theme}`)).toEqual([])
})

test('a link to a message of another version shows that version', async () => {
  const log = talked()
  log.prompt('Which two are the slowest?', undefined, undefined, 'p_1')
  log.text('agent_message_chunk', 'Two of them.', 'm_two')
  log.end('completed')
  service.add('s_talk', 'Slow tests', log)
  const page = await signedIn({ sessionId: 's_talk' })
  await page.getByText('Two of them.').waitFor()
  const second = log.settled.findLast(
    (event) =>
      event.sessionUpdate === 'user_message_chunk' &&
      event.content.type === 'text' &&
      event.content.text.startsWith('Which of them'),
  )
  const id = second?.sessionUpdate === 'user_message_chunk' ? second.messageId : ''
  await page.evaluate((to) => location.assign(`#${to}`), id)
  await page.getByText('Which of them is the slowest?').waitFor()
  await page.getByRole('group', { name: 'Version 1 of 2' }).waitFor()
})

test('an answer that cannot be laid out is shown as it was written, and takes nothing else with it', async () => {
  const log = new SessionLog()
  log.prompt('Quote it, often')
  log.text('agent_message_chunk', `${'>'.repeat(2000)} quoted`)
  log.text('agent_message_chunk', `${'*a '.repeat(500)}x${'*'.repeat(500)} starred`)
  log.text('agent_message_chunk', '**bold**')
  log.end('completed')
  service.add('s_odd', 'Odd', log)
  const page = await signedIn()
  await page.goto(`${url()}/s/s_odd`)
  await page.locator('strong', { hasText: 'bold' }).waitFor()
  expect(await page.getByTestId('markdown-source').allInnerTexts()).toEqual([
    expect.stringMatching(/^>{2000} quoted$/),
    expect.stringMatching(/^\*a .* starred$/),
  ])
  await page.getByTestId('composer').waitFor()
  // React reports what a boundary holds.
  complaints.length = 0
})

test('the key that brings a tall approval into view scrolls the conversation alone', async () => {
  const log = new SessionLog()
  for (let n = 0; n < 12; n++) {
    log.prompt(`Question ${n}`)
    log.text('agent_message_chunk', 'Answer.\n\n'.repeat(9))
    log.end('completed')
  }
  log.prompt('Write it')
  const command = Array.from({ length: 200 }, (_, n) => `echo ${n}`).join('\n')
  log.call({
    toolCallId: 'c_tall',
    title: command,
    name: 'run_shell_command',
    kind: 'execute',
    rawInput: { command },
  })
  log.ask('c_tall', [])
  service.add('s_tall', 'Tall', log)
  const page = await signedIn()
  await page.goto(`${url()}/s/s_tall`)
  await card(page, 'c_tall').getByTestId('approval').waitFor()
  for (const share of [0, 1]) {
    await scrollTo(page, share)
    await page.keyboard.press('Control+Alt+Enter')
    await card(page, 'c_tall').getByTestId('approval').waitFor()
    const moved = await region(page).evaluate((element) => {
      const tops: number[] = []
      for (let at = element.parentElement; at !== null; at = at.parentElement) tops.push(at.scrollTop)
      return [
        ...tops,
        element.getBoundingClientRect().top - (element.parentElement?.getBoundingClientRect().top ?? 0),
      ]
    })
    expect(moved.every((top) => top === 0)).toBe(true)
  }
})
