/** P1, P3, P4: the store itself, of files and of PostgreSQL: an append, a list, a search. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { searchQuery } from '@sandlot/shared/search/search'
import { openSessionReader, openSessionStore } from '@sandlot/storage/store/open'
import type { SessionReader, SessionStore } from '@sandlot/storage/sessions/store'
import { type Way, inTurns, p50 } from '../../../../test/bench/measure.ts'
import { type Result, atMost, below } from '../../../../test/bench/report.ts'
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
  const way = ({ name, store }: Side): Way => ({
    name,
    once: () => store.log.append(corpus.firstChat, [corpus.message()]).then(() => undefined),
  })
  const series = await inTurns([way(sides[0]), way(sides[1])], context.samples, 50)
  const [files, postgres] = series
  return [
    {
      goal: 'P1',
      title: 'an append of one message, until it is on the disk',
      series,
      verdicts: [atMost('p50 ≤ 3 × that of files', p50(postgres), p50(files), 3)],
    },
  ]
}

export async function list(context: PostgresContext): Promise<Result[]> {
  await using stack = new AsyncDisposableStack()
  const sides = await bothSides('list', context, stack)
  const user = { id: 'person', teams: [] }
  for (const { store } of sides)
    for (let at = 1; at <= SESSIONS; at++)
      await store.sessions.create({ id: `s_${at}`, userId: user.id, cwd: '/workspace', mode: 'manual', at })
  const way = ({ name, reader }: Side): Way => ({
    name,
    async once() {
      const began = performance.now()
      const rows = await reader.sessions.list(user, { marks: { archived: false } })
      const took = performance.now() - began
      if (rows.length < 50) throw new Error(`${rows.length} chats were listed`)
      return took
    },
  })
  const series = await inTurns([way(sides[0]), way(sides[1])], context.samples, LIST_WARM_UP)
  return [
    {
      goal: 'P3',
      title: `the newest 50 of a person’s ${SESSIONS.toLocaleString('en')} chats`,
      series,
      verdicts: [below('p50 ≤ 10 ms', p50(series[1]), 10, 'ms')],
    },
  ]
}

export async function search(context: PostgresContext): Promise<Result[]> {
  await using stack = new AsyncDisposableStack()
  const messages = context.messages.toLocaleString('en')
  const sides = await bothSides('search', context, stack)
  for (const { name, store } of sides) {
    console.error(`Filling ${messages} messages: ${name}`)
    await makeCorpus().fill(store, context.messages)
  }
  const way = ({ name, reader }: Side): Way => {
    // By the same seed both sides search for the same.
    const corpus = makeCorpus()
    return {
      name: `${name}, all kinds`,
      async once() {
        const [id, q] = [corpus.person(), searchQuery.parse({ q: corpus.search() })]
        const began = performance.now()
        await reader.sessions.search({ id }, q)
        return performance.now() - began
      },
    }
  }
  const series = await inTurns([way(sides[0]), way(sides[1])], context.samples, 18)
  const [files, postgres] = series
  return [
    {
      goal: 'P4',
      title: `a search over ${messages} messages of 20 people`,
      series,
      verdicts: [
        below('files: p50 ≤ 100 ms', p50(files), 100, 'ms'),
        below('PostgreSQL: p50 ≤ 150 ms', p50(postgres), 150, 'ms'),
      ],
    },
  ]
}
