/** P1, P3, P4: the store itself, of files and of PostgreSQL: an append, a list, a search. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { searchQuery } from '@sandlot/shared/chat/search'
import { openSessionReader, openSessionStore } from '@sandlot/storage/store/open'
import type { SessionReader, SessionStore } from '@sandlot/storage/sessions/store'
import { inTurns, p50 } from '../../../sandbox/bench/measure.ts'
import { type Result, atMost, below, loadNow } from '../../../sandbox/bench/report.ts'
import { makeCorpus } from '../../../storage/bench/corpus.ts'
import type { PostgresContext } from '../postgres.ts'

const SESSIONS = 10_000
const LIST_WARM_UP = 10

interface Side {
  name: 'files' | 'PostgreSQL'
  store: SessionStore
  reader: SessionReader
}

/** A new store of each kind, which go with the stack. */
async function bothSides(
  name: string,
  { database }: PostgresContext,
  stack: AsyncDisposableStack,
): Promise<[Side, Side]> {
  const folder = mkdtempSync(join(tmpdir(), 'sandlot-stores-bench-'))
  stack.defer(() => rmSync(folder, { recursive: true }))
  const open = async (side: Side['name'], where: string): Promise<Side> => {
    const store = await openSessionStore(where)
    stack.defer(() => store.close())
    const reader = await openSessionReader(where)
    stack.defer(() => reader.close())
    return { name: side, store, reader }
  }
  return [await open('files', join(folder, 'sessions.db')), await open('PostgreSQL', await database(name))]
}

export async function append(context: PostgresContext): Promise<Result[]> {
  await using stack = new AsyncDisposableStack()
  const sides = await bothSides('append', context, stack)
  const corpus = makeCorpus()
  for (const { store } of sides) await corpus.fill(store, 1)
  const alone = await inTurns(
    sides.map(({ name, store }) => ({
      name,
      once: () => store.append(corpus.firstChat, [corpus.message()]).then(() => undefined),
    })),
    context.samples,
    50,
  )
  const [files, postgres] = alone
  if (files === undefined || postgres === undefined) throw new Error('nothing was measured')
  return [
    {
      goal: 'P1',
      title: 'an append of one message, until it is on the disk',
      unit: 'ms',
      series: alone,
      verdicts: [atMost('p50 ≤ 3 × that of files', p50(postgres), p50(files), 3)],
      load: loadNow(),
    },
  ]
}

export async function list(context: PostgresContext): Promise<Result[]> {
  await using stack = new AsyncDisposableStack()
  const sides = await bothSides('list', context, stack)
  const user = { id: 'person', teams: [] }
  for (const { store } of sides)
    for (let at = 1; at <= SESSIONS; at++)
      await store.createSession({
        id: `s_${at}`,
        userId: user.id,
        cwd: '/workspace',
        mode: 'manual',
        at,
      })
  const series = await inTurns(
    sides.map(({ name, reader }) => ({
      name,
      once: async () => {
        const began = performance.now()
        const rows = await reader.listSessions(user, { kept: { archived: false } })
        const took = performance.now() - began
        if (rows.length < 50) throw new Error(`${rows.length} chats were listed`)
        return took
      },
    })),
    context.samples,
    LIST_WARM_UP,
  )
  const postgres = series[1]
  if (postgres === undefined) throw new Error('nothing was measured')
  return [
    {
      goal: 'P3',
      title: `the newest 50 of a person’s ${SESSIONS.toLocaleString('en')} chats`,
      unit: 'ms',
      series,
      verdicts: [below('p50 ≤ 10 ms', p50(postgres), 10, 'ms')],
      load: loadNow(),
    },
  ]
}

export async function search(context: PostgresContext): Promise<Result[]> {
  await using stack = new AsyncDisposableStack()
  const sides = await bothSides('search', context, stack)
  for (const { name, store } of sides) {
    context.say(`Filling ${context.messages.toLocaleString('en')} messages: ${name}`)
    await makeCorpus().fill(store, context.messages)
  }
  const results: Result[] = []
  const corpus = makeCorpus()
  const all = sides.map(({ name }) => ({ name: `${name}, all kinds`, values: [] as number[], failures: 0 }))
  const kinds = []
  for (const { name: kind, make } of corpus.searches) {
    let query = make()
    let person = corpus.person()
    const series = await inTurns(
      sides.map(({ name, reader }) => ({
        name: `${name}, ${kind}`,
        once: async () => {
          // Both look for the same.
          if (name === 'files') [query, person] = [make(), corpus.person()]
          const q = searchQuery.parse({ q: query })
          const began = performance.now()
          await reader.search({ id: person }, q)
          return performance.now() - began
        },
      })),
      Math.ceil(context.samples / corpus.searches.length),
      3,
    )
    kinds.push(...series)
    for (const [place, one] of series.entries()) {
      all[place]?.values.push(...one.values)
      if (all[place] !== undefined) all[place].failures += one.failures
    }
  }
  for (const one of all) one.values.sort((a, b) => a - b)
  const postgres = all[1]
  if (postgres === undefined) throw new Error('nothing was measured')
  results.push({
    goal: 'P4',
    title: `a search over ${context.messages.toLocaleString('en')} messages of 20 people`,
    unit: 'ms',
    series: [...all, ...kinds],
    verdicts: [below('p50 ≤ 150 ms', p50(postgres), 150, 'ms')],
    load: loadNow(),
  })
  return results
}
