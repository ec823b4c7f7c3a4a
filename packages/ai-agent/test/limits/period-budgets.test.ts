/** Row "budgets": per user, team and deployment, of a day and a month, checked before each request and each call. */
import { isOutcome } from '@sandlot/shared/chat/events'
import { describe, expect, test } from 'vitest'
import {
  type Period,
  type PeriodBudgets,
  callOverPeriods,
  endOf,
  overPeriods,
  spentOf,
} from '../../src/limits/period-budgets.ts'
import { budgetsOf } from '../../src/limits/budget-view.ts'
import { ContextWindow } from '../../src/model/context-window.ts'
import type { Model } from '../../src/model/model.ts'
import type { Session } from '../../src/session/session.ts'
import {
  AgentBench,
  type Core,
  ask,
  happened,
  heldTool,
  newSession,
  outcomes,
  whenEvent,
  whenIdle,
} from '../support/agent-fixture.ts'
import { deltaChunk, sse, textAnswer, toolCalls } from '../support/fake-provider.ts'
import { calls, echo, says } from '../scripts/words.ts'

const NOON = Date.UTC(2026, 10, 22, 12)
const MIDNIGHT = Date.UTC(2026, 10, 23)
const HOUR = 3_600_000
const NOTHING = { turns: 0, calls: 0, tokens: 0, cost: 0, unpriced: 0, ms: 0 }

const limits = [
  ['turns', 3, /3 model answers for today/],
  ['calls', 3, /3 calls for today/],
  ['tokens', 1_500, /1,500 tokens for today/],
  ['cost', 0.5, /\$0\.50 for today/],
  ['ms', HOUR, /60 minutes of running time for today/],
] as const

/** A core on which every user has these limits of a day, at a time that the test sets. */
function coreWith(bench: AgentBench, day: PeriodBudgets, now: () => number, tools?: Parts): Promise<Core> {
  const limitsOf = () => ({ maxTurns: 20, budgets: { day } })
  return bench.core({ parts: { limitsOf, now }, tools })
}
type Parts = NonNullable<Parameters<AgentBench['core']>[0]>['tools']

const reasons = ({ log }: Session) => happened(log, 'prompt_ended').map(({ reason }) => reason)
const lastText = ({ log }: Session) => happened(log, 'prompt_ended').at(-1)?.text
const told = ({ log }: Session, callId: string) =>
  log.filter(isOutcome).find(({ toolCallId }) => toolCallId === callId)?.rawOutput?.forModel

const sessionOf = (core: Core, userId: string) =>
  core.manager.create({ userId, cwd: '/workspace', mode: 'yolo' })
const spentAlone = (spent: typeof NOTHING) => ({
  own: async () => spent,
  together: async () => spent,
})
const overDay = (spent: typeof NOTHING, day: PeriodBudgets) => overPeriods({ day }, spentAlone(spent), NOON)
/** From when on is counted at this time. */
async function startOf(period: Period, now: number): Promise<number> {
  const asked = Promise.withResolvers<number>()
  const store = {
    spentSince: async (_: string, at: number) => {
      asked.resolve(at)
      return NOTHING
    },
    spentTogether: async () => NOTHING,
  }
  await spentOf(store, 'u_ada', now).own(period)
  return asked.promise
}
const callOverDay = (spent: typeof NOTHING, behind: number, day: PeriodBudgets) =>
  callOverPeriods({ day }, spentAlone(spent), behind, NOON)

describe('limits of a day', () => {
  test.each(limits)('%s: one below goes, at it there is a sentence', async (name, limit, words) => {
    const step = name === 'cost' ? 0.01 : 1
    expect(await overDay({ ...NOTHING, [name]: limit - step }, { [name]: limit })).toBeUndefined()
    expect(await overDay({ ...NOTHING, [name]: limit }, { [name]: limit })).toMatch(words)
    expect(await overDay({ ...NOTHING, [name]: limit }, { [name]: limit })).toMatch(/again at midnight UTC/)
    expect(await overDay({ ...NOTHING, [name]: 1e12, unpriced: 3 }, {})).toBeUndefined()
  })

  test('a call is judged by its place among those of the day, and by the time', async () => {
    const spent = { ...NOTHING, calls: 5, turns: 9, tokens: 9, cost: 9, ms: HOUR }
    expect(await callOverDay(spent, 2, { calls: 3 })).toBeUndefined()
    expect(await callOverDay(spent, 1, { calls: 3 })).toMatch(/not started.*3 calls for today.*midnight UTC/)
    expect(await callOverDay(spent, 0, { ms: HOUR + 1 })).toBeUndefined()
    expect(await callOverDay(spent, 0, { ms: HOUR })).toMatch(/not started.*60 minutes/)
    // Usage of an answer does not keep its calls from running; the next request is not made.
    expect(await callOverDay(spent, 0, { turns: 1, tokens: 1, cost: 1 })).toBeUndefined()
  })

  test('a provider that does not count has one answer of a day that is limited in dollars, not one of each message', async () => {
    const counts = { prompt_tokens: 1, completion_tokens: 1 }
    await using bench = await AgentBench.start([
      textAnswer('Counted.', { usage: counts }),
      textAnswer('Not counted.', { usage: null }),
    ])
    const core = await bench.core({
      wrap: (parts) => ({
        ...parts,
        models: { ...parts.models, model: { ...parts.models.model, price: { input: 1, output: 1 } } },
        limitsOf: () => ({ maxTurns: 10, budgets: { day: { cost: 5 } } }),
      }),
    })
    for (const reason of ['completed', 'completed', 'budget', 'budget']) {
      const session = await newSession(core)
      await ask(session, 'go')
      expect(happened(session.log, 'prompt_ended')).toMatchObject([{ reason }])
      if (reason === 'budget')
        expect(happened(session.log, 'prompt_ended')[0]?.text).toMatch(
          /^The cost of one of today’s answers is unknown/,
        )
    }
    expect(bench.provider.requests).toHaveLength(2)
  })

  test('an answer that was stopped does not end the day', async () => {
    const hanging = { steps: [sse(deltaChunk({ content: 'So far' }))], after: 'hang' } as const
    await using bench = await AgentBench.start([hanging])
    const core = await bench.core()
    const session = await newSession(core)
    const { done } = await session.prompt('go')
    await whenEvent(session, ({ sessionUpdate }) => sessionUpdate === 'agent_message_chunk')
    await session.cancel()
    expect(await done).toMatchObject({ reason: 'cancelled' })
    expect(await core.store.usage.spentSince('u_ada', 0, 0)).toMatchObject({
      turns: 0,
      tokens: 0,
      unpriced: 0,
    })
  })

  test('a day begins at midnight UTC', async () => {
    const at = Date.UTC(2026, 10, 22, 13, 5)
    expect(await startOf('day', at)).toBe(Date.UTC(2026, 10, 22))
    expect(endOf('day', at)).toBe(MIDNIGHT)
  })

  test('tokens of all sessions together, from storage', async () => {
    await using bench = await AgentBench.start([textAnswer('one')])
    const core = await coreWith(bench, { tokens: 15 }, () => NOON)
    await ask(await newSession(core), 'first')
    const spent = { ...NOTHING, turns: 1, tokens: 15, unpriced: 1 }
    expect(await core.store.usage.spentSince('u_ada', MIDNIGHT - 24 * HOUR, NOON)).toEqual(spent)
    const session = await newSession(core)
    await ask(session, 'second')
    expect(reasons(session)).toEqual(['budget'])
    expect(lastText(session)).toMatch(/15 tokens for today/)
    expect(bench.provider.requests).toHaveLength(1)
  })

  test('model answers of all sessions together; the next day there are new ones', async () => {
    await using bench = await AgentBench.start([calls(echo('a')), says('one'), says('next day')])
    let now = NOON
    const core = await coreWith(bench, { turns: 2 }, () => now)
    const [first, second] = [await newSession(core), await newSession(core)]
    await ask(first, 'go')
    expect(reasons(first)).toEqual(['completed'])
    await ask(second, 'go')
    expect(happened(second.log, 'prompt_ended')).toMatchObject([
      { reason: 'budget', stopReason: 'max_turn_requests' },
    ])
    expect(lastText(second)).toMatch(/2 model answers for today/)
    now = MIDNIGHT
    await ask(second, 'and now?')
    expect(reasons(second)).toEqual(['budget', 'completed'])
    expect(bench.provider.requests).toHaveLength(3)
  })

  test('calls of all sessions together, also after a restart and of a deleted one; refused ones are told', async () => {
    const script = [calls(echo('a')), says('one'), calls(echo('b'), echo('c'), echo('d')), says('next day')]
    await using bench = await AgentBench.start(script)
    let now = NOON
    const before = await coreWith(bench, { calls: 3 }, () => now)
    const first = await newSession(before)
    await ask(first, 'go')
    await before.manager.removal.delete('u_ada', first.id)
    await before.leave()

    const core = await coreWith(bench, { calls: 3 }, () => now)
    const second = await newSession(core)
    await ask(second, 'go')
    expect(outcomes(second.log)).toEqual({ b: ['completed'], c: ['completed'], d: ['failed cancelled'] })
    expect(told(second, 'd')).toMatch(/not started.*3 calls for today/)
    expect(reasons(second)).toEqual(['budget'])
    expect(lastText(second)).toMatch(/3 calls for today.*midnight UTC/)
    now = MIDNIGHT
    await ask(second, 'and now?')
    expect(reasons(second)).toEqual(['budget', 'completed'])
    // The provider takes only a history in which every call has its result.
    expect(bench.provider.requests).toHaveLength(4)
  })

  test('two prompts at once: the calls of both count, and together they never pass the limit', async () => {
    const held = heldTool('hold', true)
    const hold = (id: string) => ({ id, name: 'hold', args: { key: id } })
    await using bench = await AgentBench.start([calls(hold('a')), calls(hold('b'), hold('c'))])
    const core = await coreWith(bench, { calls: 2 }, () => NOON, [held.tool])
    const [first, second] = [await newSession(core), await newSession(core)]
    const running = await first.prompt('go')
    await held.whenBegun(1)
    const other = await second.prompt('go')
    await held.whenBegun(2)
    for (const key of ['a', 'b']) held.release(key)
    await Promise.all([running.done, other.done])
    expect(held.begun).toEqual(['a', 'b'])
    expect(outcomes(second.log)).toEqual({ b: ['completed'], c: ['failed cancelled'] })
    expect([reasons(first), reasons(second)]).toEqual([['budget'], ['budget']])
  })

  test('time of two prompts at once counts of both; a call after it is not run, and the next day it is', async () => {
    const held = heldTool('hold', false)
    const hold = (id: string) => ({ id, name: 'hold', args: { key: id } })
    const script = [calls(hold('a')), calls(hold('b'), hold('c')), says('one'), says('next day')]
    await using bench = await AgentBench.start(script)
    let now = NOON
    const core = await coreWith(bench, { ms: 2 * HOUR }, () => now, [held.tool])
    const [first, second] = [await newSession(core), await newSession(core)]
    const one = await first.prompt('go')
    await held.whenBegun(1)
    const two = await second.prompt('go')
    await held.whenBegun(2)
    now += HOUR - 1
    held.release('a')
    await one.done
    expect(reasons(first)).toEqual(['completed'])
    now += 2
    held.release('b')
    await two.done
    expect(outcomes(second.log)).toEqual({ b: ['completed'], c: ['failed cancelled'] })
    expect(told(second, 'c')).toMatch(/120 minutes of running time for today/)
    expect(reasons(second)).toEqual(['budget'])
    now = MIDNIGHT
    await ask(second, 'and now?')
    expect(reasons(second)).toEqual(['budget', 'completed'])
  })

  test('answers of a model that says nothing of its requests, as the demo’s, count too, and so do their calls', async () => {
    await using bench = await AgentBench.start([calls(echo('a')), says('one'), says('never')])
    const core = await bench.core({
      wrap: ({
        models: {
          model: { images: _images, ...model },
          ...models
        },
        ...parts
      }) => ({
        ...parts,
        models: { ...models, model: { ...model, stream: silent(model.stream) } },
        limitsOf: () => ({ maxTurns: 20, budgets: { day: { turns: 2 } } }),
      }),
    })
    const session = await newSession(core)
    for (let nth = 0; nth < 2; nth++) await ask(session, 'go')
    expect(reasons(session)).toEqual(['completed', 'budget'])
    expect(await core.store.usage.spentSince('u_ada', 0, Date.now())).toMatchObject({ turns: 2, calls: 1 })
    expect(bench.provider.requests).toHaveLength(2)
  })

  test('a Stop while the day is looked up is a Stop', async () => {
    const asked = Promise.withResolvers<void>()
    const known = Promise.withResolvers<void>()
    await using bench = await AgentBench.start([says('never')])
    const core = await bench.core({
      wrap: (parts) => {
        const spentSince = async () => {
          asked.resolve()
          await known.promise
          return { ...NOTHING, turns: 9 }
        }
        const store = { ...parts.store, usage: { ...parts.store.usage, spentSince } }
        return { ...parts, store, limitsOf: () => ({ maxTurns: 20, budgets: { day: { turns: 1 } } }) }
      },
    })
    const session = await newSession(core)
    const { done } = await session.prompt('go')
    await asked.promise
    const stopped = session.cancel()
    known.resolve()
    await stopped
    expect(await done).toMatchObject({ reason: 'cancelled' })
  })

  test('a message that came meanwhile has a budget of its own, also when a summary used up this one', async () => {
    const held = heldTool('hold', false)
    const full = { usage: { prompt_tokens: 3_500, completion_tokens: 10 } }
    await using bench = await AgentBench.start([
      textAnswer(Array.from({ length: 1_000 }, (_, nth) => `w${nth}`).join(' '), {
        usage: null,
        pieceLength: 1_000,
      }),
      toolCalls([{ id: 'a', name: 'hold', args: { key: 'a' } }], full),
      textAnswer('What was.', { usage: { prompt_tokens: 9_000, completion_tokens: 10 } }),
      says('Heard.'),
    ])
    const core = await bench.core({
      tools: [held.tool],
      wrap: (parts) => ({
        ...parts,
        models: {
          ...parts.models,
          model: { ...parts.models.model, window: new ContextWindow({ set: 4_000 }) },
        },
        limitsOf: () => ({ maxTurns: 20, budgets: { tokens: 5_000 } }),
      }),
    })
    const session = await newSession(core)
    await ask(session, 'talk')
    await session.prompt('work')
    await held.whenBegun(1)
    await session.prompt('also this')
    held.release('a')
    await whenEvent(session, (event) => JSON.stringify(event).includes('Heard.'))
    await whenIdle(session)
    expect(reasons(session)).toEqual(['completed', 'budget', 'completed'])
  })
})

describe('limits of a month', () => {
  const DECEMBER = Date.UTC(2026, 11, 1)

  test('begin on the 1st, midnight UTC, also behind a December and a February', async () => {
    expect([await startOf('month', NOON), endOf('month', NOON)]).toEqual([Date.UTC(2026, 10, 1), DECEMBER])
    expect(endOf('month', Date.UTC(2026, 11, 31, 23, 59))).toBe(Date.UTC(2027, 0, 1))
    expect(endOf('month', Date.UTC(2028, 1, 29))).toBe(Date.UTC(2028, 2, 1))
    expect(await startOf('month', DECEMBER)).toBe(DECEMBER)
  })

  test('name the month and the day on which they start again, to the person and to the model', async () => {
    const spent = { ...NOTHING, calls: 3, cost: 20 }
    expect(await overPeriods({ month: { cost: 20 } }, spentAlone(spent), NOON)).toBe(
      'Your limit of $20.00 for this month is used up. It starts again on 1 December at midnight UTC; until then an administrator can raise it.',
    )
    expect(await callOverPeriods({ month: { calls: 2 } }, spentAlone(spent), 0, NOON)).toMatch(
      /not started: the user’s limit of 2 calls for this month is used up. It starts again on 1 December/,
    )
  })

  test('a month that ends in a prompt: what came before midnight is the old one’s, and the prompt goes on', async () => {
    const held = heldTool('hold', false)
    await using bench = await AgentBench.start([
      textAnswer('November.'),
      toolCalls([{ id: 'a', name: 'hold', args: { key: 'a' } }]),
      textAnswer('December.'),
      textAnswer('never'),
    ])
    let now = DECEMBER - HOUR
    const limitsOf = () => ({ maxTurns: 20, budgets: { month: { turns: 2 } } })
    const core = await bench.core({ parts: { limitsOf, now: () => now }, tools: [held.tool] })
    const session = await newSession(core)
    await ask(session, 'one')
    const running = await session.prompt('two')
    await held.whenBegun(1)
    now = DECEMBER
    held.release('a')
    await running.done
    expect(reasons(session)).toEqual(['completed', 'completed'])
    const turns = async (at: number) => (await core.store.usage.spentSince('u_ada', at, now)).turns
    expect([await turns(await startOf('month', DECEMBER - 1)), await turns(DECEMBER)]).toEqual([3, 1])
    // A clock that is set back into November finds its limit used up, as it was.
    now = DECEMBER - HOUR
    await ask(session, 'three')
    expect(reasons(session)).toEqual(['completed', 'completed', 'budget'])
    expect(lastText(session)).toMatch(/2 model answers for this month.*1 December/)
  })

  test('an answer of unknown cost ends its prompt and the day, not the month', async () => {
    await using bench = await AgentBench.start([
      textAnswer('Not counted.', { usage: null }),
      textAnswer('Tomorrow.', { usage: null }),
    ])
    let now = NOON
    const limitsOf = () => ({ maxTurns: 20, budgets: { month: { cost: 5 } } })
    const core = await bench.core({ parts: { limitsOf, now: () => now } })
    const session = await newSession(core)
    for (const text of ['one', 'two']) await ask(session, text)
    expect(reasons(session)).toEqual(['completed', 'budget'])
    expect(lastText(session)).toMatch(
      /cost of one of today’s answers is unknown.*\$5\.00 a month.*midnight UTC/,
    )
    now = MIDNIGHT
    await ask(session, 'three')
    expect(reasons(session)).toEqual(['completed', 'budget', 'completed'])
  })
})

describe('limits of several people together', () => {
  const of = { kind: 'team', id: 't_1', name: 'Data' } as const

  test('a team’s members share one limit, another person has none of it', async () => {
    await using bench = await AgentBench.start([textAnswer('one'), textAnswer('Eve is in no team.')])
    const limitsOf = (userId: string) => ({
      maxTurns: 20,
      budgets: userId === 'u_eve' ? {} : { together: [{ of, month: { tokens: 15 } }] },
    })
    const core = await bench.core({ parts: { limitsOf, now: () => NOON } })
    for (const id of ['u_ada', 'u_bob']) await core.store.people.known.put(id, { teams: ['t_1'] })
    const [ada, bob, eve] = [
      await newSession(core),
      await sessionOf(core, 'u_bob'),
      await sessionOf(core, 'u_eve'),
    ]
    await ask(ada, 'go')
    await ask(bob, 'go')
    await ask(eve, 'go')
    expect([reasons(ada), reasons(bob), reasons(eve)]).toEqual([['completed'], ['budget'], ['completed']])
    expect(lastText(bob)).toBe(
      'The limit of 15 tokens for this month that the team “Data” has together is used up. It starts again on 1 December at midnight UTC; until then an administrator can raise it.',
    )
  })

  test('everybody shares that of the deployment', async () => {
    await using bench = await AgentBench.start([textAnswer('one'), textAnswer('never')])
    const together = [{ of: { kind: 'deployment' } as const, day: { tokens: 15 } }]
    const limitsOf = () => ({ maxTurns: 20, budgets: { together } })
    const core = await bench.core({ parts: { limitsOf, now: () => NOON } })
    await ask(await newSession(core), 'go')
    const bob = await sessionOf(core, 'u_bob')
    await ask(bob, 'go')
    expect(lastText(bob)).toMatch(/^The limit of 15 tokens for today that everybody on this Sandlot has/)
  })

  test.each(limits)('%s of all: one below goes, at it there is a sentence', async (name, limit, words) => {
    const budgets = { together: [{ of, day: { [name]: limit } }] }
    const with_ = (amount: number) => overPeriods(budgets, spentAlone({ ...NOTHING, [name]: amount }), NOON)
    expect(await with_(limit - (name === 'cost' ? 0.01 : 1))).toBeUndefined()
    expect(await with_(limit)).toMatch(words)
    expect(await with_(limit)).toMatch(/for today that the team “Data” has together is used up/)
  })

  test('calls of all count before each call, of whomever they are, and the time that all ran', async () => {
    await using bench = await AgentBench.start([
      calls(echo('a')),
      says('one'),
      calls(echo('b'), echo('c')),
      says('never'),
    ])
    let now = NOON
    let day: PeriodBudgets = { calls: 2 }
    const limitsOf = () => ({ maxTurns: 20, budgets: { together: [{ of, day }] } })
    const core = await bench.core({ parts: { limitsOf, now: () => now } })
    for (const id of ['u_ada', 'u_bob']) await core.store.people.known.put(id, { teams: ['t_1'] })
    await ask(await newSession(core), 'go')
    const bob = await sessionOf(core, 'u_bob')
    await ask(bob, 'go')
    expect(outcomes(bob.log)).toEqual({ b: ['completed'], c: ['failed cancelled'] })
    expect(told(bob, 'c')).toMatch(/not started: the limit of 2 calls for today that the team “Data” has/)
    expect(reasons(bob)).toEqual(['budget'])
    // Two ends at the same moment are no time; an hour of one counts for both.
    const at = await startOf('day', NOON)
    expect(await core.store.usage.spentTogether(of, at, now)).toMatchObject({ turns: 3, calls: 3, ms: 0 })
    day = { ms: HOUR }
    now += HOUR
    await ask(bob, 'again')
    expect(reasons(bob)).toEqual(['budget', 'completed'])
  })

  test('an answer of unknown cost ends the day of its person, not that of others who share the limit', async () => {
    await using bench = await AgentBench.start([
      textAnswer('Not counted.', { usage: null }),
      textAnswer('Not counted either.', { usage: null }),
    ])
    const together = [{ of: { kind: 'deployment' } as const, month: { cost: 5 } }]
    const core = await bench.core({
      parts: { limitsOf: () => ({ maxTurns: 20, budgets: { together } }), now: () => NOON },
    })
    const [ada, bob] = [await newSession(core), await sessionOf(core, 'u_bob')]
    for (const session of [ada, ada, bob, bob]) await ask(session, 'go')
    expect([reasons(ada), reasons(bob)]).toEqual([
      ['completed', 'budget'],
      ['completed', 'budget'],
    ])
    expect(lastText(bob)).toMatch(/unknown.*\$5\.00 a month for all together/)
    expect(bench.provider.requests).toHaveLength(2)
  })

  test('what is left of each, and from which share on it warns', async () => {
    const spent = { ...NOTHING, tokens: 79, cost: 4 }
    const budgets = { day: { tokens: 100 }, month: { cost: 5 }, together: [{ of, day: { tokens: 100 } }] }
    const left = (warnAt: number) =>
      budgetsOf(
        budgets,
        { own: async () => spent, together: async () => ({ ...NOTHING, tokens: 80 }) },
        { now: NOON, warnAt },
      )
    const data = { name: 'Data', of: 'team' }
    const day = { period: 'day', startsAgainAt: MIDNIGHT }
    expect(await left(0.8)).toEqual([
      { of: 'you', name: null, ...day, what: 'tokens', limit: 100, used: 79, warns: false },
      {
        of: 'you',
        name: null,
        period: 'month',
        startsAgainAt: Date.UTC(2026, 11, 1),
        what: 'cost',
        limit: 5,
        used: 4,
        warns: true,
      },
      { ...data, ...day, what: 'tokens', limit: 100, used: 80, warns: true },
    ])
    expect((await left(0)).map(({ warns }) => warns)).toEqual([false, false, false])
  })
})

/** The same answers without what they took. */
function silent(stream: Model['stream']): Model['stream'] {
  return async (...asked) => ({ ...(await stream(...asked)), usage: {} })
}
