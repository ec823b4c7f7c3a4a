/** The order of turns: drawn comings and goings, and what must hold whatever they are. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Ticket, FairScheduler } from '../../src/limits/fair-scheduler.ts'

const turn = (id: string, person: string, model = 'm'): Ticket => ({ id, person, model })

test('where there is room a prompt goes at once', () => {
  const turns = new FairScheduler(2)
  expect(turns.ask(turn('a1', 'a'), 0)).toBe(true)
  expect(turns.ask(turn('a2', 'a'), 0)).toBe(true)
  expect(turns.ask(turn('a3', 'a'), 0)).toBe(false)
})

test('nobody’s tenth goes before another’s first', () => {
  const turns = new FairScheduler(1)
  for (let n = 1; n <= 10; n++) turns.ask(turn(`a${n}`, 'a'), 0)
  turns.ask(turn('b1', 'b'), 0)
  turns.ask(turn('c1', 'c'), 0)
  turns.ask(turn('b2', 'b'), 0)
  const gone: string[] = []
  for (let last = 'a1'; gone.length < 12;) {
    turns.leave(last)
    const [next] = turns.next(0)
    if (next === undefined) break
    gone.push(next.id)
    last = next.id
  }
  expect(gone).toEqual(['b1', 'c1', 'a2', 'b2', 'a3', 'a4', 'a5', 'a6', 'a7', 'a8', 'a9', 'a10'])
})

test('a model that refused takes one request after its rest, then more as it answers', () => {
  const turns = new FairScheduler(Number.POSITIVE_INFINITY)
  const all = ['a', 'b', 'c', 'd', 'e', 'f'].map((person) => turn(`${person}1`, person))
  for (const one of all) expect(turns.ask(one, 0)).toBe(true)
  for (const one of all) turns.refused(one, 100)
  for (const one of all) expect(turns.ask(one, 1)).toBe(false)
  expect(turns.ask(turn('x', 'x', 'another'), 1)).toBe(true)
  expect(turns.next(99)).toEqual([])
  expect(turns.nextAt(1)).toBe(100)
  expect(turns.next(100).map(({ id }) => id)).toEqual(['a1'])
  expect(turns.next(100)).toEqual([])
  turns.answered(all[0] ?? turn('', ''), true)
  expect(turns.next(100).map(({ id }) => id)).toEqual(['b1', 'c1'])
})

test('a turn in which the model refused was none', () => {
  const turns = new FairScheduler(Number.POSITIVE_INFINITY)
  const [a, b] = [turn('a1', 'a'), turn('b1', 'b')]
  turns.refused(a, 10)
  turns.ask(a, 0)
  turns.ask(b, 0)
  expect(turns.next(10)).toMatchObject([{ id: 'a1' }])
  turns.refused(a, 20)
  turns.ask(a, 11)
  expect(turns.inOrder().map(({ id }) => id)).toEqual(['b1', 'a1'])
})

type Step =
  | { do: 'ask'; person: number; model: number }
  | { do: 'end' | 'stop' | 'answer' | 'refuse'; which: number }
  | { do: 'pass'; ms: number }

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({ do: fc.constant('ask' as const), person: fc.nat(4), model: fc.nat(1) }),
    },
    {
      weight: 4,
      arbitrary: fc.record({ do: fc.constantFrom('end', 'stop', 'answer', 'refuse'), which: fc.nat(20) }),
    },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('pass' as const), ms: fc.nat(50) }) },
  ) as fc.Arbitrary<Step>,
  { maxLength: 120, size: 'max' },
)

/** Drives the bookkeeping as prompts would. `seen` gets each prompt that goes. */
function walk(
  places: number,
  all: readonly Step[],
  seen: (turns: FairScheduler, gone: Ticket) => void,
): FairScheduler {
  const turns = new FairScheduler(places)
  const running = new Map<string, Ticket>()
  let now = 0
  let made = 0
  const go = (one: Ticket): void => {
    running.set(one.id, one)
    seen(turns, one)
  }
  for (const step of all) {
    const pick = <T>(from: Iterable<T>, which: number): T | undefined => {
      const list = [...from]
      return list[which % Math.max(1, list.length)]
    }
    if (step.do === 'ask') {
      const one = turn(`p${made++}`, `person ${step.person}`, `model ${step.model}`)
      if (turns.ask(one, now)) go(one)
    } else if (step.do === 'pass') now += step.ms
    else if (step.do === 'stop') {
      const one = pick(turns.inOrder(), step.which)
      if (one !== undefined) {
        turns.leave(one.id)
        expect(turns.inOrder().some(({ id }) => id === one.id)).toBe(false)
      }
    } else {
      const one = pick(running.values(), step.which)
      if (one === undefined) continue
      if (step.do === 'answer') turns.answered(one, true)
      if (step.do === 'end') turns.leave(one.id)
      if (step.do === 'refuse') turns.refused(one, now + 20)
      if (step.do !== 'answer') running.delete(one.id)
      if (step.do === 'refuse' && turns.ask(one, now)) go(one)
    }
    for (const one of turns.next(now)) go(one)
    expect(turns.held).toBeLessThanOrEqual(places)
  }
  return turns
}

describe('whatever comes and goes', () => {
  test('there are never more than places, and what waits cannot go', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 4 }), steps, (places, all) => {
        walk(places, all, () => undefined)
      }),
    )
  })

  test('nobody starves: while one waits for a place, each other has at most one turn', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 3 }), steps, (places, all) => {
        // Without refusals, which take turns back.
        const plain = all.filter((step) => step.do !== 'refuse' && step.do !== 'answer')
        const turnsSince = new Map<string, Map<string, number>>()
        walk(places, plain, (turns, gone) => {
          turnsSince.delete(gone.person)
          const waiting = new Set(turns.inOrder().map(({ person }) => person))
          for (const person of turnsSince.keys()) if (!waiting.has(person)) turnsSince.delete(person)
          for (const person of waiting) {
            if (person === gone.person) continue
            const counts = turnsSince.get(person) ?? new Map<string, number>()
            turnsSince.set(person, counts)
            counts.set(gone.person, (counts.get(gone.person) ?? 0) + 1)
            expect(counts.get(gone.person)).toBeLessThanOrEqual(1)
          }
        })
      }),
    )
  })

  test('all that waits goes in the end', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 4 }), steps, (places, all) => {
        const running = new Map<string, Ticket>()
        const turns = walk(places, all, (_, one) => running.set(one.id, one))
        for (let round = 0; turns.size > 0; round++) {
          expect(round).toBeLessThan(500)
          for (const one of running.values()) {
            turns.answered(one, true)
            turns.leave(one.id)
          }
          running.clear()
          for (const one of turns.next(1_000_000)) running.set(one.id, one)
        }
      }),
    )
  })

  test('a restart keeps the order', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 3 }), steps, (places, all) => {
        const before = walk(places, all, () => undefined)
        const after = new FairScheduler(places)
        const waiting = before.inOrder()
        for (const one of [...waiting].toReversed())
          after.restore(one, { joined: before.joinedAt(one.id) ?? 0, served: before.servedAt(one.person) })
        expect(after.inOrder().map(({ id }) => id)).toEqual(waiting.map(({ id }) => id))
      }),
    )
  })
})
