/** Reads and copies of a long log leave the event loop free. */
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeMeta } from '@sandlot/shared/chat/event-meta'
import type { SessionEvent } from '@sandlot/shared/chat/events'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { openSqliteWriter } from '../../src/database/sqlite-file.ts'
import { openSessionStore } from '../../src/store/open.ts'
import type { SessionStore } from '../../src/sessions/store.ts'

/** Far more than a fast machine reads in the slices that a test asks for. */
const EVENTS = 8_000

let folder: string
let store: SessionStore
/** Written once, since that costs more than what a test does with it. */
let written: string
beforeAll(async () => {
  written = mkdtempSync(join(tmpdir(), 'sandlot-long-'))
  const first = await openSessionStore(join(written, 'sessions.db'))
  await first.sessions.create({ id: 's', userId: 'u', cwd: '/workspace', mode: 'yolo', at: 1 })
  await first.log.append(
    's',
    Array.from({ length: EVENTS }, (_, at) => said(`word ${at} `.repeat(200))),
  )
  await first.close()
})
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sandlot-long-'))
  copyFileSync(join(written, 'sessions.db'), join(folder, 'sessions.db'))
  store = await openSessionStore(join(folder, 'sessions.db'))
})
afterEach(async () => {
  await store.close()
  rmSync(folder, { recursive: true })
})
afterAll(() => {
  rmSync(written, { recursive: true })
})

function said(text: string): SessionEvent {
  const content = { type: 'text', text } as const
  return { sessionUpdate: 'agent_message_chunk', messageId: 'm', content, _meta: makeMeta({}, 1) }
}

/** Turns of the event loop during `work`. */
async function turnsOf(work: () => Promise<unknown>): Promise<number> {
  let turns = 0
  let over = false
  const turn = (): void => {
    turns += 1
    if (!over) setImmediate(turn)
  }
  setImmediate(turn)
  await work()
  over = true
  return turns
}

test.each([
  ['taking it over', () => store.log.takeOver('s')],
  ['reading it', () => store.log.read('s')],
  [
    'taking it over ten times at once',
    () => Promise.all(Array.from({ length: 10 }, () => store.log.takeOver('s'))),
  ],
  ['removing it', () => store.sessions.remove('s')],
  ['copying it', async () => store.sessions.fork('s', forkOf('t'), await store.log.read('s'))],
])('%s is done in many turns of the event loop', async (_name, work) => {
  expect(await turnsOf(work)).toBeGreaterThan(3)
})

test('reading back a long output leaves the process its other work', async () => {
  const size = 32 * 1024 * 1024
  await store.outputs.append('s', 'c', 0, Buffer.alloc(size, 'x'))
  const turns = await turnsOf(async () => {
    for (let at = 0; at < size; at += 64 * 1024)
      expect(await store.outputs.read('s', 'c', at, at + 64 * 1024)).toHaveLength(64 * 1024)
  })
  expect(turns).toBeGreaterThan(3)
})

test('a chat with long outputs goes in many turns, and from the first on no read finds it', async () => {
  const size = 64 * 1024 * 1024
  await store.outputs.append('s', 'c', 0, Buffer.alloc(size, 'x'))
  const turns = await turnsOf(async () => {
    const deleted = store.sessions.remove('s')
    await store.sessions.create({ id: 'meanwhile', userId: 'u', cwd: '/workspace', mode: 'yolo', at: 2 })
    expect(await store.outputs.read('s', 'c', size - 1, size)).toHaveLength(1)
    expect(await store.sessions.get('s')).toBeUndefined()
    expect((await store.sessions.list('u')).map(({ id }) => id)).toEqual(['meanwhile'])
    await deleted
  })
  expect(turns).toBeGreaterThan(40)
  expect(await store.outputs.read('s', 'c', 0, 1)).toHaveLength(0)
  expect(await store.log.read('s')).toEqual([])
})

const forkOf = (id: string) =>
  ({ id, userId: 'u', cwd: '/workspace', mode: 'yolo', title: 'A copy', at: 2 }) as const

test('other writes go between the parts of a copy, and until its end no read finds it', async () => {
  const copied = store.sessions.fork('s', forkOf('t'), await store.log.read('s'))
  await store.log.append('s', [said('meanwhile')])
  expect(await store.sessions.get('t')).toBeUndefined()
  expect((await store.sessions.list('u')).map(({ id }) => id)).toEqual(['s'])
  expect(await copied).toMatchObject({ id: 't', userId: 'u', title: 'A copy', lastSeq: EVENTS })
  expect(await store.log.read('t')).toEqual((await store.log.read('s')).slice(0, EVENTS))
})

test('a copy whose source is deleted meanwhile is refused, and leaves nothing', async () => {
  const copied = store.sessions.fork('s', forkOf('t'), await store.log.read('s'))
  const refused = expect(copied).rejects.toMatchObject({ code: 'not_found' })
  await store.sessions.remove('s')
  await refused
  expect(await store.log.read('t')).toEqual([])
})

test.each([
  ['of a copy', async () => store.sessions.fork('s', forkOf('t'), await store.log.read('s', 0, 300))],
  [
    'of a removal',
    async () => {
      await store.sessions.create({ id: 't', userId: 'u', cwd: '/workspace', mode: 'yolo', at: 2 })
      await store.log.append('t', [said('still here')])
      await store.outputs.append('t', 'c', 0, Buffer.from('still here'))
    },
  ],
])('what a process that ended in the middle %s has left is gone at the next start', async (_of, begin) => {
  await begin()
  await store.close()
  const path = join(folder, 'sessions.db')
  const file = openSqliteWriter(path)
  file.exec("update sessions set user_id = '' where id = 't'")
  file.close()
  store = await openSessionStore(path)
  expect(await store.log.read('t')).toEqual([])
  expect(await store.outputs.read('t', 'c', 0, 10)).toHaveLength(0)
  expect(await store.sessions.get('s')).toBeDefined()
})
