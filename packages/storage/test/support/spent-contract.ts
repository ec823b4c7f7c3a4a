/** The contract of users' total usage in every store. Part of the sessions contract. */
import { makeSandlotEvent } from '@sandlot/shared/chat/events'
import { expect, test } from 'vitest'
import type { LogRows } from '../../src/sessions/log.ts'
import type { SessionRows } from '../../src/sessions/sessions.ts'
import type { Effects } from '../../src/tables/records.ts'
import type { SpentReads } from '../../src/usage/usage.ts'

const AT = 1_790_000_000_000
const NOTHING = { turns: 0, calls: 0, tokens: 0, cost: 0, unpriced: 0, ms: 0 }

type Spending = { sessions: Pick<SessionRows, 'create' | 'remove'>; log: LogRows; usage: SpentReads }

/** `store` gives one with a session `s` of `ann`. */
export function testSpent(store: () => Spending): void {
  const second = () =>
    store().sessions.create({ id: 't', userId: 'ann', cwd: '/workspace', mode: 'manual', at: AT })
  const append = (id: string, at: number, effects: Effects) =>
    store().log.append(id, [makeSandlotEvent({ type: 'stop_asked' }, {}, at)], effects)
  const spent = (since: number, now: number, user = 'ann') => store().usage.spentSince(user, since, now)
  const ran = async (since: number, now: number) => (await spent(since, now)).ms

  test('answers, calls, tokens and known prices since a moment, in all sessions, also deleted ones', async () => {
    await second()
    const usage = { promptId: 'p', model: 'm', input: 10, output: 5, cached: 8, reasoning: 2 }
    await append('s', AT, { usage: { ...usage, cost: 0.25, calls: 3, at: AT } })
    await append('s', AT, { usage: { ...usage, at: AT + 1 } })
    await append('t', AT, { usage: { ...usage, cost: 0.5, calls: 2, at: AT + 2 } })
    const all = { turns: 3, calls: 5, tokens: 45, cost: 0.75, unpriced: 1, ms: 0 }
    const later = { turns: 2, calls: 2, tokens: 30, cost: 0.5, unpriced: 1, ms: 0 }
    expect(await spent(AT, AT + 9)).toEqual(all)
    expect(await spent(AT + 1, AT + 9)).toEqual(later)
    expect(await spent(AT, AT + 9, 'bob')).toEqual(NOTHING)
    await store().sessions.remove('t')
    expect(await spent(AT, AT + 9)).toEqual(all)
  })

  test('a prompt has run from its beginning to its end, or until now; of it counts what is since the moment', async () => {
    await append('s', AT, { runningPromptId: 'p' })
    expect(await ran(AT, AT + 10)).toBe(10)
    expect(await ran(AT + 4, AT + 10)).toBe(6)
    await append('s', AT + 15, {})
    await append('s', AT + 20, { runningPromptId: null })
    expect(await ran(AT, AT + 90)).toBe(20)
    expect(await ran(AT + 19, AT + 90)).toBe(1)
    expect(await ran(AT + 20, AT + 90)).toBe(0)
    expect(await spent(AT, AT + 90, 'bob')).toEqual(NOTHING)
  })

  test('two prompts at once count both, and one that follows at once counts by itself', async () => {
    await second()
    await append('s', AT, { runningPromptId: 'p' })
    await append('t', AT + 5, { runningPromptId: 'q' })
    expect(await ran(AT, AT + 10)).toBe(15)
    await append('s', AT + 20, { runningPromptId: 'p2' })
    expect(await ran(AT, AT + 25)).toBe(20 + 5 + 20)
    expect(await ran(AT + 22, AT + 25)).toBe(3 + 3)
  })

  test('a clock that was set back gives nothing back', async () => {
    await append('s', AT, { runningPromptId: 'p' })
    await append('s', AT + 20, { runningPromptId: 'p2' })
    expect(await ran(AT, AT + 5)).toBe(20)
  })

  test('a session that is deleted while it runs has run until its last event', async () => {
    await second()
    await append('t', AT + 2, { runningPromptId: 'p' })
    await append('t', AT + 7, {})
    await store().sessions.remove('t')
    expect(await ran(AT, AT + 90)).toBe(5)
  })
}
