/**
 * Search over many messages, and what the index adds to an append:
 * `node --conditions=sandlot-source packages/storage/bench/search.ts [messages]` (1,000,000 by default; the goal is
 * 100 ms at p50).
 */
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { searchQuery } from '@sandlot/shared/chat/search'
import type { SessionEvent } from '@sandlot/shared/chat/events'
import { openSessionReader, openSessionStore } from '../src/store/open.ts'
import { makeCorpus } from './corpus.ts'

const GOAL_MS = 100

const messages = Number(process.argv[2] ?? 1_000_000)
const corpus = makeCorpus()

const quantile = (times: number[], q: number): number =>
  times.toSorted((a, b) => a - b)[Math.floor((times.length - 1) * q)] ?? Number.NaN
const shown = (times: number[]): string =>
  `p50 ${quantile(times, 0.5).toFixed(2)} ms, p99 ${quantile(times, 0.99).toFixed(1)} ms, ${times.length} times`

const folder = mkdtempSync(join(tmpdir(), 'sandlot-search-bench-'))
try {
  const path = join(folder, 'sessions.db')
  const store = await openSessionStore(path)
  const began = performance.now()
  await corpus.fill(store, messages)
  const seconds = (performance.now() - began) / 1000
  const megabytes = statSync(path).size / 1_000_000
  console.log(`${messages} messages in ${seconds.toFixed(0)} s, ${megabytes.toFixed(0)} MB`)

  // The same event, once with something to find in it and once with nothing: in turns, so that other load meets both.
  const thought = (event: SessionEvent): SessionEvent =>
    ({ ...event, sessionUpdate: 'agent_thought_chunk' }) as SessionEvent
  const cost = { indexed: [] as number[], plain: [] as number[] }
  for (let index = 0; index < 2_000; index++) {
    const isIndexed = index % 2 === 0
    const event = corpus.message()
    const start = performance.now()
    await store.append(corpus.firstChat, [isIndexed ? event : thought(event)])
    cost[isIndexed ? 'indexed' : 'plain'].push(performance.now() - start)
  }
  console.log(`an append of one message, indexed: ${shown(cost.indexed)}; not: ${shown(cost.plain)}`)

  const reader = await openSessionReader(path)
  const all: number[] = []
  for (const { name, make } of corpus.searches) {
    const times: number[] = []
    for (let index = 0; index < 60; index++) {
      const q = searchQuery.parse({ q: make() })
      const start = performance.now()
      await reader.search({ id: corpus.person() }, q)
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
