/**
 * Search over many messages, and what the index adds to an append:
 * `node --conditions=sandlot-source packages/storage/bench/search.ts [messages]` (1,000,000 by default; the goal is
 * 100 ms at p50).
 */
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { searchQuery } from '@sandlot/shared/desk/search'
import { makeMeta } from '@sandlot/shared/event-meta'
import type { SessionEvent } from '@sandlot/shared/events'
import { randomFrom } from '../../../test/campaign.ts'
import { openSessionReader, openSessionStore } from '../src/sessions/open.ts'

const PEOPLE = 20
const PER_CHAT = 250
const PER_APPEND = 250
const VOCABULARY = 30_000
const WORDS_PER_MESSAGE = 30
const GOAL_MS = 100

const messages = Number(process.argv[2] ?? 1_000_000)
const random = randomFrom('search')
const letters = 'etaoinshrdlucmfwypvbgkjqxz'
const word = (): string =>
  Array.from({ length: 2 + Math.floor(random() * 8) }, () => letters[Math.floor(random() ** 2 * 26)]).join('')
const vocabulary = Array.from({ length: VOCABULARY }, word)
/** By Zipf's law: the n-th word is 1/n as frequent as the first. */
const drawn = (): string => vocabulary[Math.floor(VOCABULARY ** random()) - 1] ?? ''
const text = (): string => Array.from({ length: WORDS_PER_MESSAGE }, drawn).join(' ')
const message = (at: number): SessionEvent => ({
  sessionUpdate: 'user_message_chunk',
  messageId: `m_${at}`,
  content: { type: 'text', text: text() },
  _meta: makeMeta({}, at),
})

const quantile = (times: number[], q: number): number =>
  times.toSorted((a, b) => a - b)[Math.floor((times.length - 1) * q)] ?? Number.NaN
const shown = (times: number[]): string =>
  `p50 ${quantile(times, 0.5).toFixed(2)} ms, p99 ${quantile(times, 0.99).toFixed(1)} ms, ${times.length} times`

const folder = mkdtempSync(join(tmpdir(), 'sandlot-search-bench-'))
try {
  const path = join(folder, 'sessions.db')
  const store = await openSessionStore(path)
  let at = 1_700_000_000_000
  const began = performance.now()
  for (let made = 0; made < messages; made += PER_CHAT) {
    const id = `s_${made}`
    const userId = `person-${(made / PER_CHAT) % PEOPLE}`
    await store.createSession({ id, userId, cwd: '/workspace', mode: 'manual', at })
    for (let some = 0; some < PER_CHAT; some += PER_APPEND)
      await store.append(
        id,
        Array.from({ length: PER_APPEND }, () => message((at += 5_000))),
      )
  }
  const seconds = (performance.now() - began) / 1000
  const megabytes = statSync(path).size / 1_000_000
  console.log(`${messages} messages in ${seconds.toFixed(0)} s, ${megabytes.toFixed(0)} MB`)

  // The same event, once with something to find in it and once with nothing: in turns, so that other load meets both.
  const thought = (event: SessionEvent): SessionEvent =>
    ({ ...event, sessionUpdate: 'agent_thought_chunk' }) as SessionEvent
  const cost = { indexed: [] as number[], plain: [] as number[] }
  for (let index = 0; index < 2_000; index++) {
    const isIndexed = index % 2 === 0
    const event = message((at += 5_000))
    const start = performance.now()
    await store.append('s_0', [isIndexed ? event : thought(event)])
    cost[isIndexed ? 'indexed' : 'plain'].push(performance.now() - start)
  }
  console.log(`an append of one message, indexed: ${shown(cost.indexed)}; not: ${shown(cost.plain)}`)

  const reader = await openSessionReader(path)
  const rank = (n: number): string => vocabulary[n] ?? ''
  const kinds: [string, () => string][] = [
    ['a rare word', () => rank(5_000 + Math.floor(random() * 20_000))],
    ['a word of every third message', () => rank(Math.floor(random() * 5))],
    ['two common words', () => `${rank(Math.floor(random() * 100))} ${rank(Math.floor(random() * 100))}`],
    ['three letters', () => rank(Math.floor(random() * VOCABULARY)).slice(0, 3)],
    ['one letter', () => letters[Math.floor(random() * 26)] ?? ''],
    ['a phrase', () => `"${rank(Math.floor(random() * 30))} ${rank(Math.floor(random() * 30))}"`],
  ]
  const all: number[] = []
  for (const [name, make] of kinds) {
    const times: number[] = []
    for (let index = 0; index < 60; index++) {
      const q = searchQuery.parse({ q: make() })
      const start = performance.now()
      await reader.search({ id: `person-${Math.floor(random() * PEOPLE)}` }, q)
      times.push(performance.now() - start)
    }
    all.push(...times)
    console.log(`${name}: ${shown(times)}`)
  }
  console.log(`all together: ${shown(all)}; goal p50 ≤ ${GOAL_MS} ms`)
  process.exitCode = quantile(all, 0.5) <= GOAL_MS ? 0 : 1
  await reader.close()
  await store.close()
} finally {
  rmSync(folder, { recursive: true })
}
