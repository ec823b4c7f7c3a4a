/** Nothing runs that is not on the screen, and what ran says so. */
import { expect, test } from 'vitest'
import { PHONE, card, until, usePages } from '../../fixture/pages.ts'
import { SessionLog } from '../../fixture/session-log.ts'

const { service, signedIn } = usePages()
const answered = () =>
  service.received.flatMap((frame) =>
    frame.type === 'ai_chat_approve' ? [[frame.toolCallId, frame.optionId]] : [],
  )

/** The service's answer once an answer was stored. */
function answer(sessionId: string, toolCallId: string): void {
  const log = service.sessions.get(sessionId)?.log
  if (log === undefined) throw new Error('no story')
  service.emit(sessionId, [
    log.happened({ type: 'approval_answered', toolCallId, allowed: true, by: 'user', optionId: 'once' }),
    log.started(toolCallId),
  ])
}

test('a key brings its card into view and marks it, and acts only when its whole command is there', async () => {
  const page = await signedIn({ sessionId: 's_apart' })
  const first = card(page, 'f_first')
  const region = page.getByRole('group', { name: 'Messages' })
  await region.evaluate((element) => element.scrollTo({ top: element.scrollHeight }))
  await until(async () => expect(await first.getByTestId('tool-command').isVisible()).toBe(true))
  await page.keyboard.press('Control+Alt+Enter')
  await until(async () => expect(await first.getAttribute('data-marked')).toBe('true'))
  expect(answered()).toEqual([])
  expect(await page.getByTestId('approval-status').textContent()).toMatch(
    /^Brought into view.*again to allow it/,
  )
  expect(await first.textContent()).toContain('1 of 3')
  await page.keyboard.press('Control+Alt+Enter')
  await until(() => expect(answered()).toEqual([['f_first', 'once']]))

  answer('s_apart', 'f_first')
  await until(async () => expect(await first.getAttribute('data-marked')).toBeNull())
  // The next one, and then one that no screen holds: its end is read there, and its buttons answer.
  await page.keyboard.press('Control+Alt+Enter')
  await until(async () => expect(await card(page, 'f_between').getAttribute('data-marked')).toBe('true'))
  await page.keyboard.press('Control+Alt+Backspace')
  await until(() => expect(answered().at(-1)).toEqual(['f_between', 'no']))
  answer('s_apart', 'f_between')
  const long = card(page, 'f_long')
  await until(async () => expect(await long.textContent()).not.toContain('of 2'))
  for (let press = 0; press < 3; press++) await page.keyboard.press('Control+Alt+Enter')
  await until(async () =>
    expect(await page.getByTestId('approval-status').textContent()).toMatch(/longer than the screen/),
  )
  expect(answered()).toHaveLength(2)
  await long
    .getByTestId('approval')
    .getByRole('button', { name: /^Allow/ })
    .click()
  await until(() => expect(answered().at(-1)).toEqual(['f_long', 'once']))
})

test('“Allow all once” allows what is on the screen, and shows what is not', async () => {
  const page = await signedIn({ sessionId: 's_apart' })
  const region = page.getByRole('group', { name: 'Messages' })
  await region.evaluate((element) => element.scrollTo({ top: 0 }))
  await page.getByTestId('approval-bar').getByRole('button', { name: 'Allow all once' }).click()
  await until(async () =>
    expect(await page.getByTestId('approval-status').textContent()).toMatch(/Brought into view/),
  )
  expect(answered()).toEqual([['f_first', 'once']])
})

test('a call without arguments is allowed by a key while its card is on the screen', async () => {
  const log = new SessionLog(Date.now() - 20_000)
  log.prompt('Refresh the list.')
  log.call({ toolCallId: 'b_bare', title: 'Refresh', name: 'refresh', kind: 'other', rawInput: {} })
  log.ask('b_bare', [{ part: 'refresh', because: 'may change something' }])
  service.add('s_bare', 'The list', log, {
    updatedAt: Date.now(),
    running: true,
    waiting: 0,
    mode: 'manual',
  })
  const page = await signedIn({ sessionId: 's_bare' })
  await until(async () => expect(await card(page, 'b_bare').getByTestId('approval').isVisible()).toBe(true))
  await page.keyboard.press('Control+Alt+Enter')
  await until(() => expect(answered()).toEqual([['b_bare', 'once']]))
})

test('focus goes to the next card, then to the message, and the status region says so', async () => {
  const page = await signedIn({ sessionId: 's_three' })
  for (const [id, next] of [
    ['w_get', 'w_dir'],
    ['w_dir', 'w_push'],
  ] as const) {
    await card(page, id)
      .getByTestId('approval')
      .getByRole('button', { name: /^Allow/ })
      .focus()
    await page.keyboard.press('Enter')
    await until(() => expect(answered().at(-1)).toEqual([id, 'once']))
    answer('s_three', id)
    await until(async () =>
      expect(await card(page, next).evaluate((one) => one === document.activeElement)).toBe(true),
    )
    expect(await page.getByTestId('approval-status').textContent()).toMatch(/^Next: /)
    // From there the first stop of Tab is in the card.
    await page.keyboard.press('Tab')
    expect(await card(page, next).evaluate((one) => one.contains(document.activeElement))).toBe(true)
  }
  await card(page, 'w_push')
    .getByTestId('approval')
    .getByRole('button', { name: /^Allow/ })
    .focus()
  await page.keyboard.press('Enter')
  await until(() => expect(answered()).toHaveLength(3))
  answer('s_three', 'w_push')
  await until(async () =>
    expect(await page.getByTestId('composer').evaluate((one) => one === document.activeElement)).toBe(true),
  )
  expect(await page.getByTestId('approval-status').textContent()).toBe('Nothing else needs you.')
})

test.each([
  ['a desktop', { viewport: { width: 1440, height: 900 } }],
  ['a phone', { viewport: PHONE, touch: true }],
])('three approvals fit %s', async (_, look) => {
  const page = await signedIn({ sessionId: 's_three', ...look })
  const region = await page.getByRole('group', { name: 'Messages' }).boundingBox()
  const top = await card(page, 'w_get').boundingBox()
  const bottom = await card(page, 'w_push').boundingBox()
  if (region === null || top === null || bottom === null) throw new Error('not there')
  expect(top.y).toBeGreaterThanOrEqual(region.y)
  expect(bottom.y + bottom.height).toBeLessThanOrEqual(region.y + region.height)
})

test('each card says what happened; like successes are one row, which opens; a step of the plan is none', async () => {
  const page = await signedIn({ sessionId: 's_receipts' })
  const phase = (id: string) => card(page, id).getAttribute('data-phase')
  expect(await phase('r_missing')).toBe('missed')
  expect(await phase('r_make')).toBe('failed')
  expect(await phase('r_denied')).toBe('stopped')
  expect(await phase('r_waited')).toBe('stopped')
  expect(await card(page, 'r_waited').textContent()).toContain('Not started')
  expect(await card(page, 'r_server').textContent()).toContain(
    'It ended when its sandbox stopped or restarted',
  )
  expect(await card(page, 'r_ask').getByTestId('answer').textContent()).toContain('2.0.0, as it breaks')
  expect(await card(page, 'r_plan').count()).toBe(0)
  expect(await card(page, 'r_run7').count()).toBe(0)
  await page.getByRole('button', { name: '30 commands, 1.2 s' }).click()
  await card(page, 'r_run7').waitFor()
  // Words and what belongs to them.
  const prose = page.getByTestId('message-assistant').first()
  const row = await page.getByTestId('call-run').boundingBox()
  const words = await prose.boundingBox()
  if (row === null || words === null) throw new Error('not there')
  expect(Math.round(row.y - words.y - words.height)).toBeGreaterThanOrEqual(16)
  expect(Math.round(row.y - words.y - words.height)).toBeLessThanOrEqual(20)
  expect(await prose.textContent()).toContain('U+202E')
})
