/**
 * The contract of usage by day, person, team, model and tool in every store. Part of the sessions
 * contract.
 */
import { makeSandlotEvent } from '@sandlot/shared/chat/events'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { SessionStore } from '../../src/sessions/store.ts'
import type { Effects } from '../../src/tables/records.ts'
import { DAY_MS, type Together, type UsageReads, dayOf } from '../../src/usage/usage-sums.ts'

const DAY = 20_000
const AT = DAY * DAY_MS
const ALL = { from: 0, to: 99_999 }

type Counting = Pick<SessionStore, 'log' | 'people' | 'sessions' | 'usage'>

interface Answer {
  user: string
  model: string
  day: number
  input: number
  output: number
  cached: number | undefined
  cost: number | undefined
}

/** `store` gives one with a session `s` of `ann`. */
export function testUsage(store: () => Counting): void {
  const append = (effects: Effects, at = AT) =>
    store().log.append('s', [makeSandlotEvent({ type: 'stop_asked' }, {}, at)], effects)
  const answer = (at: number, more: Partial<NonNullable<Effects['usage']>> = {}) =>
    append({
      usage: {
        promptId: 'p',
        model: 'm',
        input: 10,
        output: 5,
        cached: 8,
        reasoning: 2,
        cost: 0.5,
        at,
        ...more,
      },
    })
  const call = (callId: string, more: Partial<NonNullable<Effects['outcome']>> = {}) =>
    append({
      outcome: {
        promptId: 'p',
        callId,
        tool: 'echo',
        status: 'completed',
        runMs: 3,
        waitMs: 1,
        at: AT,
        ...more,
      },
    })

  test('sums of any answers are those of the answers, whatever they are split by', async () => {
    const one = fc.record({
      user: fc.constantFrom('ann', 'bob', 'cyd'),
      model: fc.constantFrom('m', 'n'),
      day: fc.integer({ min: DAY, max: DAY + 3 }),
      input: fc.nat(1_000_000),
      output: fc.nat(1_000_000),
      cached: fc.option(fc.nat(100), { nil: undefined }),
      // Sums of these are exact, in any order.
      cost: fc.option(
        fc.nat(4_000).map((value) => value / 1_024),
        { nil: undefined },
      ),
    })
    const answers: Answer[] = fc
      .sample(fc.array(one, { minLength: 60, maxLength: 60 }), { numRuns: 1, seed: 35 })
      .flat()
    await store().people.known.put('ann', { teams: ['a', 'b'] })
    await store().people.known.put('bob', { teams: ['b'] })
    for (const { user, day, ...more } of answers) await answer(day * DAY_MS + 5, { ...more, chargedTo: user })
    const teams: Record<string, (string | null)[]> = { ann: ['a', 'b'], bob: ['b'], cyd: [null] }
    const keys: Parameters<UsageReads['sums']>[1][] = [
      [],
      ['day'],
      ['person'],
      ['model'],
      ['team'],
      ['day', 'model'],
      ['day', 'team'],
    ]
    for (const by of keys)
      for (const range of [ALL, { from: DAY + 1, to: DAY + 2 }, { ...ALL, userId: 'bob', model: 'n' }]) {
        const expected = new Map<string, object>()
        const counted = answers.filter(
          ({ user, day, model }) =>
            day >= range.from &&
            day <= range.to &&
            (!('userId' in range) || (user === range.userId && model === range.model)),
        )
        const split = counted.flatMap((row) => (teams[row.user] ?? []).map((team) => ({ ...row, team })))
        const rows = by.includes('team') ? split : counted.map((row) => ({ ...row, team: null }))
        for (const row of rows) {
          const values = { day: row.day, person: row.user, model: row.model, team: row.team }
          const key = Object.fromEntries(by.map((name) => [name, values[name]]))
          const same = rows.filter((other) => {
            const others = { day: other.day, person: other.user, model: other.model, team: other.team }
            return by.every((name) => others[name] === values[name])
          })
          const priced = same.flatMap(({ cost }) => cost ?? [])
          const total = (of: (row: Answer) => number): number => same.reduce((sum, each) => sum + of(each), 0)
          const cached = total((row) => row.cached ?? 0)
          const of = total((row) => (row.cached === undefined ? 0 : row.input))
          expected.set(JSON.stringify(key), {
            ...key,
            answers: same.length,
            input: total(({ input }) => input),
            output: total(({ output }) => output),
            cached,
            cachedShare: of === 0 ? null : Math.min(1, cached / of),
            reasoning: 2 * same.length,
            calls: 0,
            cost: priced.length === 0 ? null : priced.reduce((sum, cost) => sum + cost, 0),
            unpriced: same.length - priced.length,
          })
        }
        const sums = await store().usage.sums(range, by)
        expect(sums).toHaveLength(expected.size)
        expect(sums).toEqual(expect.arrayContaining([...expected.values()]))
      }
  })

  test('of nothing there is one sum without keys, and none with', async () => {
    const nothing = { answers: 0, calls: 0, input: 0, output: 0, cached: 0, cachedShare: null, reasoning: 0 }
    expect(await store().usage.sums(ALL, [])).toEqual([{ ...nothing, cost: 0, unpriced: 0 }])
    expect(await store().usage.sums(ALL, ['day'])).toEqual([])
    expect(await store().usage.tools(ALL, ['tool'])).toEqual([])
  })

  test('unknown cost is unknown, and beside known cost it is counted', async () => {
    await answer(AT, { cost: undefined })
    expect(await store().usage.sums(ALL, [])).toMatchObject([{ answers: 1, cost: null, unpriced: 1 }])
    await answer(AT, { cost: 0 })
    expect(await store().usage.sums(ALL, [])).toMatchObject([{ answers: 2, cost: 0, unpriced: 1 }])
  })

  test('usage stays with the teams that a person had then; where those are unknown, with those of today', async () => {
    await answer(AT)
    await store().people.known.put('ann', { teams: ['old'] })
    await answer(AT)
    await answer(AT)
    await store().people.known.put('ann', { teams: ['new'] })
    const by = await store().usage.sums(ALL, ['team'])
    expect(new Map(by.map(({ team, answers }) => [team, answers]))).toEqual(
      new Map([
        ['new', 1],
        ['old', 2],
      ]),
    )
  })

  test('days are UTC, and a chat that is deleted takes nothing with it', async () => {
    await answer(AT - 1)
    await answer(AT)
    await call('c', { outputBytes: 7 })
    await store().sessions.remove('s')
    const days = await store().usage.sums(ALL, ['day'])
    expect(new Set(days.map(({ day }) => day))).toEqual(new Set([DAY - 1, DAY]))
    expect(await store().usage.tools(ALL, ['tool'])).toMatchObject([{ calls: 1, outputBytes: 7 }])
  })

  test('calls by tool: how many, how many failed, how long, and what they produced', async () => {
    await call('c', { outputBytes: 3_000_000_000 })
    await call('d', { status: 'failed', runMs: 4.4, waitMs: 0 })
    await call('e', { tool: 'other', chargedTo: 'bob', at: AT + DAY_MS })
    const echo = { tool: 'echo', calls: 2, failed: 1, runMs: 7, waitMs: 1, outputBytes: 3_000_000_000 }
    const other = { tool: 'other', calls: 1, failed: 0, runMs: 3, waitMs: 1, outputBytes: 0 }
    const sums = await store().usage.tools(ALL, ['tool'])
    expect(sums.toSorted((a, b) => (a.tool ?? '').localeCompare(b.tool ?? ''))).toEqual([echo, other])
    expect(await store().usage.tools({ ...ALL, userId: 'bob' }, ['day'])).toEqual([
      { day: DAY + 1, calls: 1, failed: 0, runMs: 3, waitMs: 1, outputBytes: 0 },
    ])
  })

  test('what teams and everybody have used up together', async () => {
    await store().people.known.put('ann', { teams: ['a', 'b'] })
    await store().people.known.put('bob', { teams: ['b'] })
    await answer(AT)
    await answer(AT + 1, { chargedTo: 'bob', cost: undefined })
    await answer(AT - 1, { cost: 4 })
    const spent = (of: Together) => store().usage.spentTogether(of, AT + 77)
    expect(await spent({ kind: 'team', id: 'a' })).toMatchObject({ turns: 1, tokens: 15, cost: 0.5 })
    expect(await spent({ kind: 'team', id: 'b' })).toMatchObject({ turns: 2, tokens: 30, cost: 0.5 })
    expect(await spent({ kind: 'team', id: 'c' })).toEqual({ turns: 0, calls: 0, tokens: 0, cost: 0, ms: 0 })
    expect(await spent({ kind: 'deployment' })).toMatchObject({ turns: 2, tokens: 30, cost: 0.5, ms: 0 })
  })

  test('how long prompts of a team and of everybody ran since midnight, by the team at their beginning', async () => {
    const midnight = DAY * DAY_MS
    const run = (at: number, runningPromptId: string | null) => append({ runningPromptId }, at)
    const ran = async (of: Together, now: number | undefined) =>
      (await store().usage.spentTogether(of, AT, now)).ms
    await store().people.known.put('ann', { teams: ['a'] })
    await run(midnight - 5, 'p')
    await run(midnight + 10, null)
    await store().people.known.put('ann', { teams: ['b'] })
    await run(midnight + 20, 'q')
    expect(await ran({ kind: 'team', id: 'a' }, midnight + 50)).toBe(10)
    expect(await ran({ kind: 'team', id: 'b' }, midnight + 50)).toBe(30)
    expect(await ran({ kind: 'deployment' }, midnight + 50)).toBe(40)
    expect(await ran({ kind: 'deployment' }, undefined)).toBe(0)
  })

  test('a clock that was set back gives neither a person nor a team anything back', async () => {
    await answer(AT + 3 * DAY_MS)
    expect(await store().usage.spentSince('ann', AT, AT + 9)).toMatchObject({ turns: 1, tokens: 15 })
    expect(await store().usage.spentTogether({ kind: 'deployment' }, AT)).toMatchObject({
      tokens: 15,
      cost: 0.5,
    })
    expect(dayOf(AT - 1)).toBe(DAY - 1)
  })
}
