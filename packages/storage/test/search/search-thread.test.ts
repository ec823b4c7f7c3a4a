/** The search thread; the contract of the search over it is in `search.test.ts`. */
import { renameSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { searchQuery } from '@sandlot/shared/search/search'
import { makeMeta } from '@sandlot/shared/chat/event-meta'
import type { SessionEvent } from '@sandlot/shared/chat/events'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openSqliteWriter } from '../../src/database/sqlite-file.ts'
import { SearchThread } from '../../src/search/search-thread.ts'
import { openSessionReader, openSessionStore } from '../../src/store/open.ts'
import { sessionsMigrations } from '../../src/store/migrations.ts'
import type { SessionStore } from '../../src/sessions/store.ts'

const ann = { id: 'ann' }
const query = searchQuery.parse({ q: 'needle' })
const WORKER = pathToFileURL(join(import.meta.dirname, '../../src/search/search-worker.ts')).href
const interrupted = { name: 'SandlotError', code: 'not_ready' }

let folder: string
let path: string
let store: SessionStore

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sandlot-search-'))
  path = join(folder, 'sessions.db')
  store = await openSessionStore(path)
  await store.sessions.create({ id: 's_1', userId: 'ann', cwd: '/workspace', mode: 'manual', at: 1 })
  const content = { type: 'text', text: 'a needle in hay' } as const
  const said: SessionEvent = {
    sessionUpdate: 'user_message_chunk',
    messageId: 'm_1',
    content,
    _meta: makeMeta({}, 1),
  }
  await store.log.append('s_1', [said])
})
afterEach(async () => {
  await store.close()
  await rm(folder, { recursive: true })
})

/** Says that nothing has to be loaded. */
const LOADED = `import { workerData as data } from 'node:worker_threads'
Atomics.store(data.loaded, 0, 1)
Atomics.notify(data.loaded, 0)`

/** Its program is `script`, in which `{flag}` is a path and `{worker}` the true program. */
const programmed = (script: string): SearchThread => {
  const own = script.replace('{worker}', WORKER).replaceAll('{flag}', join(folder, 'flag'))
  const text = `${LOADED}\n${own}`
  return new SearchThread(
    path,
    Object.keys(sessionsMigrations),
    new URL(`data:text/javascript,${encodeURIComponent(text)}`),
  )
}

test.each([
  ['exits', 'process.exit(3)'],
  ['throws', 'throw new Error("out of memory")'],
])(
  'a thread that %s is a typed error of the search that ran; the next one has a new thread',
  async (_, end) => {
    const thread = programmed(`
    import { existsSync, writeFileSync } from 'node:fs'
    import { parentPort } from 'node:worker_threads'
    if (existsSync('{flag}')) await import('{worker}')
    else parentPort.once('message', () => { writeFileSync('{flag}', ''); ${end} })
  `)
    const [first, waiting] = [thread.search(ann, query), thread.search(ann, query)]
    await expect(first).rejects.toMatchObject(interrupted)
    expect((await waiting).hits).toHaveLength(1)
    await thread.close()
  },
)

test('of one person so many searches wait, and more are refused; others wait as ever', async () => {
  const thread = programmed(`
    import { parentPort } from 'node:worker_threads'
    parentPort.on('message', () => undefined)
  `)
  const all = Promise.allSettled(Array.from({ length: 33 }, () => thread.search(ann, query)))
  await expect(thread.search(ann, query)).rejects.toMatchObject({ code: 'rate_limited' })
  const other = expect(thread.search({ id: 'bob' }, query)).rejects.toMatchObject(interrupted)
  await turn()
  await thread.close()
  for (const one of await all) expect(one).toMatchObject({ status: 'rejected', reason: interrupted })
  await other
})

test('closing ends what runs and what waits, and nothing can be searched any more', async () => {
  const thread = programmed(`
    import { parentPort } from 'node:worker_threads'
    parentPort.on('message', () => undefined)
  `)
  const all = Promise.allSettled([thread.search(ann, query), thread.search({ id: 'bob' }, query)])
  await turn()
  await thread.close()
  for (const one of await all) expect(one).toMatchObject({ status: 'rejected', reason: interrupted })
  await expect(thread.search(ann, query)).rejects.toMatchObject(interrupted)
})

const away = (): string => join(folder, 'away.db')
const change = (statement: string): void => {
  const file = openSqliteWriter(path)
  file.exec(statement)
  file.close()
}
test.each([
  ['not_migrated', () => renameSync(path, away()), () => renameSync(away(), path)],
  [
    'newer_schema',
    () => change(`insert into kysely_migration values ('999_later', '2026')`),
    () => change(`delete from kysely_migration where name = '999_later'`),
  ],
])('a file that cannot be opened is %s across the thread, and is tried again', async (code, spoil, mend) => {
  const reader = await openSessionReader(path)
  spoil()
  await expect(reader.sessions.search(ann, query)).rejects.toMatchObject({ name: 'StorageError', code })
  mend()
  expect((await reader.sessions.search(ann, query)).hits).toMatchObject([{ sessionId: 's_1', seq: 1 }])
  await reader.close()
})

test('a search is beside the thread that asks', async () => {
  const reader = await openSessionReader(path)
  await reader.sessions.search(ann, query)
  const order: string[] = []
  const search = reader.sessions.search(ann, query).finally(() => order.push('search'))
  // Statements on this thread would all be over before its next turn.
  await turn().then(() => order.push('turn'))
  await search
  expect(order).toEqual(['turn', 'search'])
  expect((await search).hits).toHaveLength(1)
  await reader.close()
})
