/**
 * Alerts to an operator, for any course of facts: property tests of the pure step, and its edges.
 */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type AlertSay, alertState, nextAlertState } from '../../src/notifications/alert-state.ts'
import { campaign, extent } from '../../../../test/campaign.ts'

type AlertState = ReturnType<typeof nextAlertState>['state']

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE
const TIMES = { raiseMs: MINUTE, clearMs: 5 * MINUTE, remindMs: DAY }

interface Look {
  afterMs: number
  ok: boolean | undefined
}
interface Told {
  say: AlertSay
  at: number
}

/** Each step goes through what is stored, as over a restart. */
function run(looks: readonly Look[]): { told: Told[]; states: AlertState[] } {
  let at = 1_800_000_000_000
  let state: AlertState = { is: 'well' }
  const told: Told[] = []
  const states: AlertState[] = []
  for (const { afterMs, ok } of looks) {
    at += afterMs
    const fact = ok === undefined ? undefined : { ok, message: 'm' }
    const next = nextAlertState(alertState.parse(JSON.parse(JSON.stringify(state))), fact, at, TIMES)
    state = next.state
    states.push(state)
    if (next.say !== undefined) told.push({ say: next.say, at })
  }
  return { told, states }
}

const looks = fc.array(
  fc.record({
    afterMs: fc.oneof(fc.integer({ min: 1_000, max: 2 * MINUTE }), fc.integer({ min: 0, max: 2 * DAY })),
    ok: fc.constantFrom(true, false, undefined),
  }),
  { maxLength: 60 },
)
const options = { seed: campaign.seed, numRuns: extent(300, 5_000) }

describe('what is said', () => {
  test('begins with raised, and raised and cleared take turns; reminders come between, a day apart', () => {
    fc.assert(
      fc.property(looks, (given) => {
        let raised = false
        let last = -Infinity
        for (const { say, at } of run(given).told) {
          expect(say === 'raised').toBe(!raised)
          if (say === 'reminder') expect(at - last).toBeGreaterThanOrEqual(DAY)
          raised = say !== 'cleared'
          last = at
        }
      }),
      options,
    )
  })

  test('is said only after the facts have said the same for the whole time, whatever came before', () => {
    fc.assert(
      fc.property(looks, (given) => {
        const { told } = run(given)
        let at = 1_800_000_000_000
        let since: { ok: boolean; at: number } | undefined
        for (const { afterMs, ok } of given) {
          at += afterMs
          if (ok === undefined) since = undefined
          else if (since?.ok !== ok) since = { ok, at }
          const said = told.find((one) => one.at === at && one.say !== 'reminder')?.say
          if (said === undefined || afterMs === 0) continue
          expect(since?.ok).toBe(said === 'cleared')
          expect(at - (since?.at ?? at)).toBeGreaterThanOrEqual(said === 'raised' ? MINUTE : 5 * MINUTE)
        }
      }),
      options,
    )
  })

  test('nothing is said of what comes and goes faster than it has to stay', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 200 }), fc.integer({ min: 1, max: 59 }), (count, seconds) => {
        const given = Array.from({ length: count }, (_, n) => ({ afterMs: seconds * 1_000, ok: n % 2 === 0 }))
        expect(run(given).told).toEqual([])
      }),
      options,
    )
  })

  test('what goes on for ever is said once, and once a day', () => {
    const given = Array.from({ length: 10 * 24 * 2 }, () => ({ afterMs: 30 * MINUTE, ok: false }))
    const says = run(given).told.map(({ say }) => say)
    expect(says).toEqual(['raised', ...Array.from({ length: 9 }, () => 'reminder')])
  })

  test('nothing known, as while the agent is down, neither raises nor clears', () => {
    const bad = { afterMs: MINUTE, ok: false }
    const unknown = Array.from({ length: 20 }, () => ({ afterMs: MINUTE, ok: undefined }))
    expect(run([bad, ...unknown, bad]).told).toEqual([])
    expect(run([bad, bad, ...unknown]).states.at(-1)?.is).toBe('ill')
  })

  test('a clock that is set back begins the waits anew, and one that is set on ends them', () => {
    const back = [
      { afterMs: 0, ok: false },
      { afterMs: -DAY, ok: false },
      { afterMs: MINUTE - 1, ok: false },
    ]
    expect(run(back).told).toEqual([])
    expect(run([...back, { afterMs: 1, ok: false }]).told).toHaveLength(1)
    const raised = [...back, { afterMs: 1, ok: false }]
    expect(
      run([...raised, { afterMs: -30 * DAY, ok: false }, { afterMs: DAY - 1, ok: false }]).told,
    ).toHaveLength(1)
    expect(run([...raised, { afterMs: 3 * DAY, ok: false }]).told).toHaveLength(2)
  })
})
