/**
 * One box for fifty people, of whom five ask for twenty prompts each: the others wait about as long as without the five.
 * In a time of its own, so that it says the same on every machine; and with a real agent, counted in answers.
 */
import { expect, test } from 'vitest'
import { campaign, extent, randomFrom } from '../../../../test/campaign.ts'
import { PromptQueue } from '../../src/limits/prompt-queue.ts'
import { type Ticket, FairScheduler } from '../../src/limits/fair-scheduler.ts'
import { AgentBench } from '../support/agent-fixture.ts'
import { type RecordedRequest, textAnswer } from '../support/fake-provider.ts'

const PEOPLE = 50
const GREEDY = 5
const EACH = 20
const PLACES = 8
/** Prompts of each of the others, one after another. */
const OTHERS_ASK = 4

interface Comes {
  turn: Ticket
  at: number
  takes: number
}

const median = (numbers: readonly number[]): number =>
  numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 0

/** Waits of the others, from when each of their prompts came until it went. */
function waits(seed: string, greedy: boolean): number[] {
  const turns = new FairScheduler(PLACES)
  const random = randomFrom(seed)
  const comes: Comes[] = []
  for (let person = 0; person < PEOPLE; person++) {
    const isGreedy = person < GREEDY
    const at = random() * 30
    const takes = Array.from({ length: isGreedy ? EACH : OTHERS_ASK }, () => 5 + random() * 20)
    if (isGreedy && !greedy) continue
    for (const [n, long] of takes.entries())
      if (isGreedy || n === 0)
        comes.push({ turn: { id: `${person} ${n}`, person: `${person}`, model: 'm' }, at, takes: long })
  }
  const long = new Map<string, number>()
  const cameAt = new Map<string, number>()
  const thinks = randomFrom(`${seed} thinks`)
  const ends: { turn: Ticket; at: number }[] = []
  const waited: number[] = []
  const go = (turn: Ticket, now: number): void => {
    if (Number(turn.person) >= GREEDY) waited.push(now - (cameAt.get(turn.id) ?? now))
    ends.push({ turn, at: now + (long.get(turn.id) ?? 0) })
  }
  for (;;) {
    comes.sort((a, b) => a.at - b.at)
    ends.sort((a, b) => a.at - b.at)
    const [next] = comes
    const [end] = ends
    if (next === undefined && end === undefined) return waited
    if (end === undefined || (next !== undefined && next.at <= end.at)) {
      if (next === undefined) continue
      comes.shift()
      long.set(next.turn.id, next.takes)
      cameAt.set(next.turn.id, next.at)
      if (turns.ask(next.turn, 0)) go(next.turn, next.at)
    } else {
      ends.shift()
      turns.leave(end.turn.id)
      for (const turn of turns.next(0)) go(turn, end.at)
      const [person = '', n = ''] = end.turn.id.split(' ')
      // The others read the answer, think, and ask for more.
      if (Number(person) >= GREEDY && Number(n) + 1 < OTHERS_ASK)
        comes.push({
          turn: { ...end.turn, id: `${person} ${Number(n) + 1}` },
          at: end.at + thinks() * 20,
          takes: 5 + thinks() * 20,
        })
    }
  }
}

test('the others’ median wait is at most 1.2 times what it is without the five', () => {
  const runs = extent(20, 500)
  const [beside, alone]: [number[], number[]] = [[], []]
  let worst = 0
  for (let run = 0; run < runs; run++) {
    const seed = `${campaign.seed} fair ${run}`
    const [theirs, without] = [waits(seed, true), waits(seed, false)]
    beside.push(...theirs)
    alone.push(...without)
    worst = Math.max(worst, median(theirs) / median(without))
  }
  const ratio = median(beside) / median(alone)
  console.info(
    `N9: ${PEOPLE} people, ${GREEDY} of them ask for ${EACH} prompts each, ${PLACES} places; ` +
      `the others’ median wait is ${ratio.toFixed(2)} times what it is without them ` +
      `(at most ${worst.toFixed(2)} in ${runs} runs)`,
  )
  expect(ratio).toBeLessThanOrEqual(1.2)
  expect(worst).toBeLessThanOrEqual(1.4)
})

test('with a real agent no other waits for more than one prompt of each of the five', async () => {
  const each = extent(4, EACH)
  const total = PEOPLE - GREEDY + GREEDY * each
  const order: string[] = []
  const allCame = Promise.withResolvers<void>()
  await using bench = await AgentBench.start(
    Array.from({ length: total }, () => async ({ body }: RecordedRequest) => {
      order.push(String(body.messages.findLast(({ role }) => role === 'user')?.content))
      await allCame.promise
      return textAnswer('Yes.')
    }),
  )
  const leaving = new AbortController()
  const core = await bench.core({
    wrap: (parts) => ({
      ...parts,
      promptQueue: new PromptQueue({
        slots: 2,
        rows: parts.store.promptQueue,
        leaving: leaving.signal,
        log: parts.log,
      }),
    }),
  })
  const done: Promise<unknown>[] = []
  const say = async (person: string): Promise<void> => {
    const session = await core.manager.create({ userId: person, cwd: '/workspace', mode: 'yolo' })
    done.push((await session.prompt(person)).done)
  }
  for (let n = 0; n < each; n++) for (let person = 0; person < GREEDY; person++) await say(`greedy ${person}`)
  for (let person = GREEDY; person < PEOPLE; person++) await say(`other ${person}`)
  allCame.resolve()
  await Promise.all(done)
  expect(order).toHaveLength(total)
  const last = order.findLastIndex((person) => person.startsWith('other'))
  const before = order.slice(0, last).filter((person) => person.startsWith('greedy'))
  expect(before.length).toBeLessThanOrEqual(GREEDY)
}, 30_000)
