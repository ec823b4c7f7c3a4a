/** Approving without tiring: change a call, then allow it; all that waits as one list with keys. */
import { sandlotEventOf } from '@sandlot/shared/chat/events'
import { expect, test } from 'vitest'
import { DESKTOP, type Look, PHONE, card, lookAt, until, usePages, oneLook } from '../fixture/pages.ts'

const { service, signedIn, complaints } = usePages()

const LOOKS: [string, Look][] = [
  ['light', { viewport: DESKTOP, theme: 'light' }],
  ['dark', { viewport: DESKTOP, theme: 'dark' }],
  ['phone', { viewport: PHONE, theme: 'light', touch: true }],
  ['phone-dark', { viewport: PHONE, theme: 'dark', touch: true }],
]

test('a call is changed in a form and allowed; the card shows what was changed', async () => {
  const page = await signedIn({ sessionId: 's_three' })
  const waiting = card(page, 'w_push')
  await waiting.getByRole('button', { name: 'Edit' }).click()
  const form = page.getByRole('form', { name: 'Change Push to main' })
  const command = form.getByLabel('command')
  await command.waitFor()
  expect(await command.inputValue()).toBe('git push origin main')
  await form.getByText('The command line for bash.').waitFor()
  // The refusal stands in the form, and the call still waits.
  service.approvals.refusal =
    'The changed call is not allowed here: git push --force is what your rule denies.'
  await command.fill('git push --force')
  await command.press('Control+Enter')
  await form.getByRole('alert').getByText('is what your rule denies').waitFor()
  // The browser’s own line about the 403.
  await until(() => expect(complaints.splice(0)).toHaveLength(1))
  service.approvals.refusal = null
  await command.fill('git push origin draft')
  await form.getByRole('button', { name: '3 more arguments' }).click()
  await form.getByLabel('timeout_ms').fill('soon')
  await form.getByRole('button', { name: 'Run as changed' }).click()
  await form.getByText('timeout_ms is not valid as a number.').waitFor()
  await form.getByLabel('timeout_ms').fill('5000')
  await form.getByRole('button', { name: 'Run as changed' }).click()
  await until(() =>
    expect(service.approvals.answers).toEqual([
      {
        sessionId: 's_three',
        callId: 'w_push',
        optionId: 'once',
        input: { command: 'git push origin draft', description: 'Push to main', timeout_ms: 5000 },
      },
    ]),
  )
  await card(page, 'w_push').getByRole('button', { expanded: false }).first().click()
  const changed = card(page, 'w_push').getByTestId('changed-call')
  await changed.getByText('You changed this call before it ran.').waitFor()
  await changed.getByText('git push origin draft').waitFor()
  await changed.getByText('git push origin main').waitFor()
})

test('what has no schema is changed as JSON, and Escape leaves it as it was', async () => {
  service.sessions.get('s_three')?.log.call({
    toolCallId: 'w_mcp',
    title: 'mail: Send',
    name: 'send',
    kind: 'other',
    rawInput: { to: 'ada@example.org' },
  })
  service.sessions
    .get('s_three')
    ?.log.ask('w_mcp', [{ part: 'mail::send', because: 'is a tool of an MCP server' }])
  const page = await signedIn({ sessionId: 's_three' })
  await card(page, 'w_mcp').getByRole('button', { name: 'Edit' }).click()
  const json = card(page, 'w_mcp').getByLabel('Arguments as JSON')
  await json.fill('[')
  await json.press('Control+Enter')
  await card(page, 'w_mcp').getByText('This is not valid JSON.').waitFor()
  await json.press('Escape')
  await card(page, 'w_mcp').getByRole('button', { name: 'Edit' }).waitFor()
  expect(service.approvals.answers).toEqual([])
})

test('all that waits is one list: by keys to the next, allowed, denied, and to its chat', async () => {
  service.change('s_three', { waiting: 3 })
  const page = await signedIn()
  const badge = page.getByTestId('pending')
  await badge.getByText('7').waitFor()
  await page.keyboard.press('Control+Shift+L')
  const list = page.getByRole('dialog', { name: 'Waiting for you' })
  const rows = list.getByTestId('pending-row')
  await rows.first().waitFor()
  expect(await rows.count()).toBe(7)
  await list.getByText('What shall I do with the old file names?').waitFor()
  const current = list.locator('[aria-current=true]')
  const [first, second] = await Promise.all(
    [rows.nth(0), rows.nth(1)].map((row) => row.getAttribute('data-row')),
  )
  expect(await current.getAttribute('data-row')).toBe(first)
  await page.keyboard.press('j')
  expect(await current.getAttribute('data-row')).toBe(second)
  await page.keyboard.press('ArrowUp')
  expect(await current.getAttribute('data-row')).toBe(first)
  // To a call of the chat of three, which is allowed; the next is denied.
  const find = async (call: string) => {
    for (let n = 0; n < 8 && (await current.getAttribute('data-row')) !== call; n++)
      await page.keyboard.press('j')
    for (let n = 0; n < 8 && (await current.getAttribute('data-row')) !== call; n++)
      await page.keyboard.press('k')
  }
  await find('s_three w_dir')
  await page.keyboard.press('Control+Alt+Enter')
  await until(() => expect(service.approvals.answers).toHaveLength(1))
  await find('s_three w_get')
  await page.keyboard.press('Control+Alt+Backspace')
  await until(() =>
    expect(service.approvals.answers.map(({ callId, optionId }) => `${callId} ${optionId}`)).toEqual([
      'w_dir once',
      'w_get no',
    ]),
  )
  await until(async () => expect(await rows.count()).toBe(5))
  await badge.getByText('5').waitFor()
  await find('s_three w_push')
  await page.keyboard.press('Enter')
  await page.locator('[data-session-page=s_three]').waitFor()
  await list.waitFor({ state: 'detached' })
})

test('a chat opens at the first of several waiting calls, and a grave one is marked', async () => {
  const log = service.sessions.get('s_apart')?.log
  const asked = log?.settled.findLast((event) => sandlotEventOf(event)?.type === 'approval_asked')
  const happened = asked === undefined ? undefined : sandlotEventOf(asked)
  if (happened?.type !== 'approval_asked') throw new Error('nothing waits')
  happened.why = [{ part: 'rm -rf build', because: 'deletes without asking', grave: true }]
  const page = await signedIn({ sessionId: 's_apart', viewport: { width: 1000, height: 500 } })
  const first = page
    .locator('[data-entry]')
    .filter({ has: page.getByTestId('approval') })
    .first()
  await until(async () => {
    const top = (await first.boundingBox())?.y ?? -1
    expect(top).toBeGreaterThanOrEqual(0)
    expect(top).toBeLessThan(500)
  })
  const grave = page.locator('[data-grave]')
  expect(await grave.innerText()).toContain('deletes without asking')
  const allow = page.getByTestId('approval').filter({ has: grave }).locator('[data-option-kind=allow_once]')
  expect(await allow.getAttribute('class')).toContain('border-failed-line')
})

test('a call that is too long to show here is not allowed by a key', async () => {
  service.change('s_apart', { waiting: 3 })
  for (const id of ['s_approve', 's_ask']) service.change(id, { waiting: 0 })
  const page = await signedIn()
  await page.keyboard.press('Control+K')
  await page.getByRole('dialog', { name: 'Chats and actions' }).waitFor()
  await page.keyboard.type('waiting for you')
  await page.getByRole('option', { name: 'Approvals waiting for you' }).waitFor()
  await until(async () => expect(await page.getByRole('option').count()).toBe(1))
  await page.keyboard.press('Enter')
  const list = page.getByRole('dialog', { name: 'Waiting for you' })
  await list.getByTestId('pending-row').first().waitFor()
  for (let n = 0; n < 3; n++) await page.keyboard.press('ArrowDown')
  await page.keyboard.press('Control+Alt+Enter')
  await list.getByRole('status').getByText('too long to show here').waitFor()
  expect(service.approvals.answers).toEqual([])
})

test.each(oneLook('saving rules', LOOKS))(
  'rules that would have answered are tried and made: %s',
  async (name, look) => {
    service.asked = {
      days: 30,
      asked: 42,
      saving: [
        { match: { shell: 'git status *' }, times: 17, title: 'git status --short && git diff --stat' },
        { match: { command: 'make && ./run' }, times: 3, title: 'Build it and run it' },
      ],
    }
    service.preview = { looked: 300, changed: [], changedCount: 0 }
    const page = await signedIn(look)
    await page.goto(`${new URL(page.url()).origin}/settings/rules`)
    const part = page.getByTestId('saving-rules')
    await part.getByText('In the last 30 days you were asked 42 times.').waitFor()
    await part.getByRole('button', { name: 'Preview allowing commands that begin with git status' }).click()
    await part.getByText('Wouldn’t have changed any of your last 300 calls.').waitFor()
    expect(await lookAt(page, `saving-rules-${name}`)).toEqual([])
    await part.getByRole('button', { name: 'Add rule: allow commands that begin with git status' }).click()
    await page
      .getByRole('list', { name: 'Your rules' })
      .getByText('commands that begin with git status')
      .waitFor()
    await until(async () => expect(await part.getByRole('listitem').count()).toBe(1))
    expect(service.rules.at(-1)).toMatchObject({ effect: 'allow', match: { shell: 'git status *' } })
  },
)

test.each(oneLook('approvals', LOOKS))(
  'the form, the list and the modes look right: %s',
  async (name, look) => {
    service.change('s_three', { waiting: 3 })
    const page = await signedIn({ ...look, sessionId: 's_three' })
    await card(page, 'w_push').getByRole('button', { name: 'Edit' }).click()
    await page.getByLabel('command').last().waitFor()
    const found = await lookAt(page, `approval-edit-${name}`)
    await page.keyboard.press('Escape')
    await page.getByTestId('pending').click()
    await page.getByTestId('pending-row').first().waitFor()
    found.push(...(await lookAt(page, `pending-list-${name}`)))
    await page.keyboard.press('Escape')
    await page.getByTestId('mode').click()
    await page.getByRole('menuitemradio', { name: 'Auto', exact: false }).first().waitFor()
    found.push(...(await lookAt(page, `mode-auto-${name}`)))
    expect(found).toEqual([])
  },
)
