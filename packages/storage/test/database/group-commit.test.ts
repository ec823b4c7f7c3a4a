/** Writes that wait together share one commit, and nothing else: each keeps its own end and its own order. */
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeMeta } from '@sandlot/shared/chat/event-meta'
import { seqOf, type SessionEvent } from '@sandlot/shared/chat/events'
import fc from 'fast-check'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openSessionStore } from '../../src/store/open.ts'
import type { SessionStore } from '../../src/sessions/store.ts'

const SESSIONS = ['a', 'b', 'c'] as const

let folder: string
let path: string
let store: SessionStore
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sandlot-group-'))
  path = join(folder, 'sessions.db')
  store = await openSessionStore(path)
  await Promise.all(SESSIONS.map((id) => create(id)))
})
afterEach(async () => {
  await store.close()
  rmSync(folder, { recursive: true })
})

function create(id: string): Promise<unknown> {
  return store.sessions.create({ id, userId: 'u', cwd: '/workspace', mode: 'yolo', at: 1 })
}

function said(text: string): SessionEvent {
  const content = { type: 'text', text } as const
  return { sessionUpdate: 'agent_message_chunk', messageId: 'm', content, _meta: makeMeta({}, 1) }
}

async function texts(id: string): Promise<string[]> {
  return (await store.log.read(id)).map((event) =>
    event.sessionUpdate === 'agent_message_chunk' && event.content.type === 'text' ? event.content.text : '?',
  )
}

/** Transactions in the write-ahead log: its frames that say how large the file is after a commit. */
function commits(): number {
  const log = readFileSync(`${path}-wal`)
  const frame = 24 + log.readUInt32BE(8)
  let count = 0
  for (let at = 32; at + frame <= log.length; at += frame) if (log.readUInt32BE(at + 4) !== 0) count++
  return count
}

test('what waits at once is one commit, for events, sessions and output alike', async () => {
  const before = commits()
  await Promise.all([
    ...SESSIONS.flatMap((id) => [store.log.append(id, [said('one')]), store.log.append(id, [said('two')])]),
    create('d'),
    store.log.takeOver('a'),
    store.outputs.append('b', 'c_1', 0, new Uint8Array(1024 * 1024)),
  ])
  expect(commits() - before).toBe(1)
  expect(await texts('b')).toEqual(['one', 'two'])
})

test('a long row is written in pieces, in order', async () => {
  const before = commits()
  const all = await Promise.all(
    Array.from({ length: 150 }, (_, place) => store.log.append('a', [said(`${place}`)])),
  )
  expect(commits() - before).toBe(3)
  expect(all.flat().map((event) => seqOf(event))).toEqual(all.map((_, place) => place + 1))
})

test('one that fails undoes itself alone', async () => {
  const submission = { userId: 'u', requestId: 'r', promptId: 'p' }
  const before = commits()
  const took = await Promise.allSettled([
    store.log.append('a', [said('one')], { submission }),
    store.log.append('b', [said('again')], { submission }),
    store.log.append('none', [said('nowhere')]),
    store.log.append('b', [said('two')]),
    store.log.append('a', [said('late')], {}, 7),
    store.log.append('a', [said('three')]),
  ])
  expect(commits() - before).toBe(1)
  const ends = took.map((one) =>
    one.status === 'fulfilled' ? 'stored' : (one.reason as { code: string }).code,
  )
  expect(ends).toEqual(['stored', 'conflict', 'not_found', 'stored', 'not_owner', 'stored'])
  expect([await texts('a'), await texts('b')]).toEqual([['one', 'three'], ['two']])
  expect((await store.sessions.get('b'))?.lastSeq).toBe(1)
})

test('written pages move into the file between writes, not in the middle', async () => {
  const text = 'x'.repeat(150_000)
  const fileSize = (): number => statSync(path).size
  const before = fileSize()
  for (let n = 0; n < 40; n++) await store.log.append('a', [said(text)])
  // 6 MB: SQLite would have done it by itself. So few writes are not worth it, however long a slow disk rests between them.
  expect(fileSize()).toBe(before)
  for (let n = 0; n < 20; n++) await store.log.append('a', [said('more')])
  await expect.poll(fileSize, { timeout: 20_000 }).toBeGreaterThan(40 * text.length)
  expect(await texts('a')).toHaveLength(60)
})

test('closing writes what waits', async () => {
  const waiting = store.log.append('a', [said('last')])
  await store.close()
  expect(await waiting).toHaveLength(1)
  store = await openSessionStore(path)
  expect(await texts('a')).toEqual(['last'])
})

test('property: of concurrent writes, each session has what was acknowledged, in order', async () => {
  let round = 0
  const write = fc.record({
    session: fc.constantFrom(...SESSIONS),
    requestId: fc.option(fc.constantFrom('r1', 'r2', 'r3'), { nil: undefined }),
    later: fc.boolean(),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(write, { minLength: 1, maxLength: 30 }), async (writes) => {
      round++
      const had = new Map(await Promise.all(SESSIONS.map(async (id) => [id, await texts(id)] as const)))
      const pending: Promise<{ session: string; text: string } | undefined>[] = []
      for (const [place, { session, requestId, later }] of writes.entries()) {
        const text = `${round} ${place}`
        const submission =
          requestId === undefined ? {} : { submission: { userId: `u${round}`, requestId, promptId: 'p' } }
        pending.push(
          store.log.append(session, [said(text)], submission).then(
            () => ({ session, text }),
            () => undefined,
          ),
        )
        if (later) await new Promise((resolve) => setImmediate(resolve))
      }
      const stored = await Promise.all(pending)
      for (const id of SESSIONS) {
        const mine = stored.flatMap((one) => (one?.session === id ? [one.text] : []))
        expect(await texts(id)).toEqual([...(had.get(id) ?? []), ...mine])
      }
      // The first of each request id is stored, and no other.
      const ids = writes.flatMap(({ requestId }) => requestId ?? [])
      const free = writes.filter(({ requestId }) => requestId === undefined).length
      expect(stored.filter((one) => one !== undefined)).toHaveLength(free + new Set(ids).size)
    }),
    { numRuns: 25 },
  )
})
