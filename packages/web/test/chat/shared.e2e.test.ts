/** A chat with several people, in a real browser: who is who, comments, and what each may do. */
import { describe, expect, test } from 'vitest'
import { sample } from '../../../../test/campaign.ts'
import { DESKTOP, PHONE, card, lookAt, until, usePages } from '../fixture/pages.ts'
import { ADA } from '../fixture/service.ts'
import { SessionLog } from '../fixture/session-log.ts'

const { service, complaints, signedIn, openChat, frames } = usePages()

const BOB = { id: 'u_bob', name: 'Bob Martin' }
const CLEO = { id: 'u_cleo', name: 'Cleo Okafor' }
const WHY = [{ part: 'npm publish', because: 'publishes what others install' }]

/** A chat of `owner` in which all three have written; a call waits for approval. */
function conversation(owner: typeof ADA): SessionLog {
  const by = (person: typeof ADA) => (person.id === owner.id ? undefined : person)
  const log = new SessionLog()
  log.prompt('Release the parser. Tests first, please.', undefined, by(ADA))
  log.text('agent_message_chunk', 'The tests pass. I make the release now.')
  const call = (toolCallId: string, command: string) =>
    log.call({
      toolCallId,
      title: command,
      name: 'run_shell_command',
      kind: 'execute',
      rawInput: { command },
    })
  call('c_tag', 'git tag v2.1.0')
  log.ask('c_tag', [{ part: 'git tag v2.1.0', because: 'changes the repository' }])
  log.happened(
    { type: 'approval_answered', toolCallId: 'c_tag', allowed: true, by: 'user', optionId: 'once' },
    log.promptId,
    by(CLEO),
  )
  log.started('c_tag')
  log.outcome('c_tag', { status: 'completed', rawOutput: { forModel: '' } }, { exit: { code: 0 } })
  log.happened(
    {
      type: 'comment',
      commentId: 'k_1',
      text: 'I would wait for the docs. @Ada Lovelace, can you look at them today?',
      mentions: [ADA.id],
    },
    log.promptId,
    by(CLEO),
  )
  log.end('completed')
  log.prompt('The docs are done. Publish it.', undefined, by(BOB))
  log.text('agent_message_chunk', 'Then I publish it.')
  call('c_publish', 'npm publish')
  log.ask('c_publish', WHY)
  return log
}

function share(
  id: string,
  owner: typeof ADA,
  more: Partial<Parameters<typeof service.add>[3]> = {},
): SessionLog {
  const log = conversation(owner)
  const mine = owner.id === ADA.id
  service.add(id, 'Release of the parser', log, {
    ...(mine ? { shared: true } : { owner }),
    running: true,
    waiting: 1,
    ...more,
  })
  return log
}

/** An ordinary run looks at one of them, a full run at both. */
const LOOKS = sample(
  'looks of shared chats',
  [
    { theme: 'light', viewport: DESKTOP },
    { theme: 'dark', viewport: PHONE },
  ] as const,
  1,
)

describe('a chat of one’s own that is shared', () => {
  test.each(LOOKS)('says who wrote and allowed what, and who is there, $theme', async (look) => {
    service.demo = false
    const log = share('s_own', ADA)
    const page = await signedIn({ ...look, sessionId: 's_own' })
    const [ada, bob] = [page.getByTestId('message-user').nth(0), page.getByTestId('message-user').nth(1)]
    expect(await ada.innerText()).toMatch(/^You:\s*Release the parser/)
    expect(await bob.innerText()).toMatch(/Bob Martin\s*:\s*The docs are done/)
    expect(await card(page, 'c_tag').innerText()).toContain('Allowed by Cleo Okafor')
    const comment = page.getByRole('complementary', { name: 'Comment by Cleo Okafor' })
    expect(await comment.innerText()).toContain('not read by the agent')
    const composer = await page.getByTestId('composer').boundingBox()
    service.emit('s_own', [log.presence([ADA, BOB, { ...CLEO, typing: true }])])
    await page.getByTestId('typing').getByText('Cleo Okafor is writing…').waitFor()
    // Nothing moves for it.
    expect(await page.getByTestId('composer').boundingBox()).toEqual(composer)
    expect(await lookAt(page, `shared-own-${look.theme}`)).toEqual([])
    const here = page.getByRole('button', { name: 'Also here: Bob Martin, Cleo Okafor' })
    await here.focus()
    await page.keyboard.press('Enter')
    await page.getByText('Here now').waitFor()
    expect(await lookAt(page, `shared-here-${look.theme}`)).toEqual([])
    await page.keyboard.press('Escape')
    await until(async () => expect(await page.getByText('Here now').count()).toBe(0))
    service.emit('s_own', [log.presence([])])
    await page.getByRole('button', { name: 'Shared chat; only you are here' }).waitFor()
    expect(await page.getByTestId('typing').innerText()).toBe('')
  })

  test.each(LOOKS)('a comment is written with the keyboard, with a mention, $theme', async (look) => {
    share('s_own', ADA)
    const page = await signedIn({ ...look, sessionId: 's_own' })
    const comment = page.getByRole('switch', { name: 'Comment, not for the agent' })
    await comment.focus()
    await page.keyboard.press('Space')
    expect(await comment.getAttribute('aria-checked')).toBe('true')
    const field = page.getByTestId('composer')
    await field.pressSequentially('Thanks @cl')
    const list = page.getByRole('listbox', { name: 'People in this chat' })
    await list.getByRole('option', { name: 'Cleo Okafor', selected: true }).waitFor()
    expect(await lookAt(page, `shared-comment-${look.theme}`)).toEqual([])
    await field.press('Enter')
    expect(await field.inputValue()).toBe('Thanks @Cleo Okafor ')
    await field.pressSequentially('and @')
    await list.getByRole('option', { name: 'Cleo Okafor', selected: true }).waitFor()
    await field.press('ArrowDown')
    await list.getByRole('option', { name: 'Bob Martin', selected: true }).waitFor()
    await field.press('Escape')
    await until(async () => expect(await list.count()).toBe(0))
    await field.press('Backspace')
    await field.pressSequentially('all')
    await field.press('Enter')
    await page.getByRole('complementary', { name: 'Comment by You' }).getByText('and all').waitFor()
    expect(service.comments).toMatchObject([{ text: 'Thanks @Cleo Okafor and all', mentions: [CLEO.id] }])
    service.refusedComment = 'Cleo does not see this chat.'
    await field.fill('Nothing of this is lost')
    await field.press('Enter')
    await page.getByText('Couldn’t send your comment. Cleo does not see this chat.').waitFor()
    expect(await field.inputValue()).toBe('Nothing of this is lost')
    complaints.length = 0
    expect(frames('ai_chat')).toEqual([])
    expect(frames('ai_chat_typing').length).toBeGreaterThan(0)
    expect(frames('ai_chat_cancel')).toEqual([])
  })

  test('a chat that nobody else sees has nothing of this', async () => {
    const page = await signedIn({ sessionId: 's_build' })
    for (const id of ['people-here', 'comment-switch', 'typing'])
      expect((await page.getByTestId(id).allInnerTexts()).join('')).toBe('')
    await page.getByTestId('composer').pressSequentially('nobody sees that I write')
    expect(frames('ai_chat_typing')).toEqual([])
  })
})

describe('a chat of another', () => {
  test.each(LOOKS)('a watcher reads, and is told what they are, $theme', async (look) => {
    share('s_bob', BOB, { access: 'watch', waiting: 0 })
    const page = await signedIn({ ...look, sessionId: 's_bob' })
    await page.getByTestId('watching').getByText('watching this chat of Bob Martin').waitFor()
    expect(await page.getByTestId('composer').count()).toBe(0)
    expect(await card(page, 'c_publish').getByTestId('waiting-for-approvers').innerText()).toMatch(
      /Waiting for Bob Martin/,
    )
    expect(await page.getByTestId('approval-bar').count()).toBe(0)
    expect(
      await card(page, 'c_publish')
        .getByRole('button', { name: /Allow|Deny/ })
        .count(),
    ).toBe(0)
    await page.keyboard.press('Control+Alt+Enter')
    await page.keyboard.press('Escape')
    expect(frames('ai_chat_approve')).toEqual([])
    expect(frames('ai_chat_cancel')).toEqual([])
    expect(await lookAt(page, `shared-watch-${look.theme}`)).toEqual([])
  })

  test('who watches and may approve allows a call as it is, and is told that they cannot change it', async () => {
    share('s_bob', BOB, { access: 'watch', mayApprove: true })
    const page = await signedIn({ sessionId: 's_bob' })
    const publish = card(page, 'c_publish')
    expect(await publish.getByRole('button', { name: 'Edit' }).isDisabled()).toBe(true)
    await publish.getByText('You’re watching, so you can allow or deny it but not edit it.').waitFor()
    expect(await lookAt(page, 'shared-watch-approve')).toEqual([])
    await publish.getByRole('button', { name: 'Allow' }).click()
    await until(() => expect(frames('ai_chat_approve')).toMatchObject([{ toolCallId: 'c_publish' }]))
  })

  test('a participant writes in the owner’s sandbox, and approves where they may', async () => {
    share('s_bob', BOB, { access: 'take_part', mayApprove: true, modeCeiling: 'auto-edit' })
    const page = await signedIn({ sessionId: 's_bob' })
    await page
      .getByTestId('in-sandbox-of')
      .getByText('Runs in the sandbox of Bob Martin; edits files, commands ask first')
      .waitFor()
    expect(await page.getByTestId('mode').count()).toBe(0)
    expect(await page.getByRole('button', { name: 'Continue from here in a new chat' }).count()).toBe(0)
    expect(await lookAt(page, 'shared-take-part')).toEqual([])
    await card(page, 'c_publish').getByRole('button', { name: 'Allow' }).click()
    await until(() => expect(frames('ai_chat_approve')).toMatchObject([{ toolCallId: 'c_publish' }]))
    await page.getByTestId('composer').fill('Thank you!')
    await page.keyboard.press('Enter')
    await until(() => expect(frames('ai_chat')).toMatchObject([{ text: 'Thank you!', sessionId: 's_bob' }]))
  })

  test.each(['list', 'stream'] as const)(
    'a share that is revoked closes the chat, by the %s',
    async (how) => {
      share('s_bob', BOB, { access: 'take_part' })
      const page = await signedIn({ sessionId: 's_bob' })
      service.unshare('s_bob', how)
      const missing = page.getByTestId('missing')
      await missing.getByRole('heading', { name: 'This chat is no longer shared with you' }).waitFor()
      expect(await missing.innerText()).toContain('Bob Martin stopped sharing it')
      expect(await page.getByText('The docs are done').count()).toBe(0)
      expect(await page.getByTestId('composer').count()).toBe(0)
      expect(await lookAt(page, `shared-ended-${how}`)).toEqual([])
      // Shared again, it is there again.
      share('s_bob', BOB, { access: 'watch' })
      service.change('s_bob', {})
      await page.getByTestId('watching').waitFor()
    },
  )

  test.each(LOOKS)('the list marks what is shared, and shows only that, $theme', async (look) => {
    share('s_own', ADA)
    share('s_bob', BOB, { access: 'watch', waiting: 0 })
    const page = await signedIn(look)
    if (look.viewport === PHONE) await page.getByRole('button', { name: 'Open chats' }).click()
    const item = (id: string) => page.locator(`[data-testid=session-item][data-session-id=${id}]`)
    await item('s_bob').getByText('Bob Martin').waitFor()
    expect(await item('s_own').innerText()).toContain('shared')
    expect(await lookAt(page, `shared-list-${look.theme}`)).toEqual([])
    await item('s_bob').hover()
    await item('s_bob')
      .getByRole('button', { name: /Options for/ })
      .click()
    await page.getByRole('menuitem', { name: /Pin/ }).waitFor()
    expect(await page.getByRole('menuitem', { name: /Delete/ }).count()).toBe(0)
    await page.keyboard.press('Escape')
    await page.getByRole('radio', { name: 'Shared with me' }).check({ force: true })
    await until(async () => expect(await page.getByTestId('session-item').count()).toBe(1))
    await page.getByRole('radio', { name: 'Shared with me' }).press('ArrowLeft')
    await until(async () => expect(await item('s_own').count()).toBe(1))
    if (look.viewport === DESKTOP) await openChat(page, 's_bob')
  })
})
