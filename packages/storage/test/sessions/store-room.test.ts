import { makeSandlotEvent } from '@sandlot/shared/chat/events'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { logBytes } from '../../src/database/free-bytes.ts'
import { openWriter } from '../../src/database/database.ts'
import type { SessionsSchema } from '../../src/tables/sessions.ts'
import { sessionsMigrations } from '../../src/store/migrations.ts'
import { openSessionStore } from '../../src/store/open.ts'
import type { SessionStore } from '../../src/sessions/store.ts'
import { onBoth } from '../support/databases.ts'

const KiB = 1024
const MiB = 1024 * KiB
const RESERVE = 64 * MiB

onBoth(({ name, fresh }) => {
  let where: string
  let free = Number.MAX_SAFE_INTEGER
  const stores: SessionStore[] = []

  beforeEach(async () => {
    where = await fresh()
    free = Number.MAX_SAFE_INTEGER
  })

  afterEach(async () => {
    for (const store of stores.splice(0)) await store.close()
  })

  async function open(userBytes: number): Promise<SessionStore> {
    const room = { userBytes, freeBytes: () => free }
    const store = await openSessionStore(where, { room })
    stores.push(store)
    return store
  }

  async function addSession(store: SessionStore, id: string, userId: string): Promise<void> {
    await store.sessions.create({ id, userId, cwd: '/workspace', mode: 'yolo', at: 1 })
  }

  const note = (words: string) => makeSandlotEvent({ type: 'instructions', text: words }, {}, 1)

  test('beyond the budget an output is counted and not stored, for good; texts and other people are unaffected', async () => {
    const store = await open(100 * KiB)
    await addSession(store, 's', 'ada')
    await addSession(store, 'u', 'bob')
    const half = new Uint8Array(60 * KiB).fill(1)
    expect(await store.outputs.append('s', 'c', 0, half)).toBeUndefined()
    expect(await store.outputs.append('s', 'c', half.length, half)).toBe('budget')
    expect(await store.outputs.get('s', 'c')).toMatchObject({ storedBytes: 60 * KiB, totalBytes: 120 * KiB })
    expect(await store.outputs.append('u', 'c', 0, half)).toBeUndefined()
    await store.log.append('s', [note('x'.repeat(200 * KiB))])
    expect(await store.outputs.append('s', 'd', 0, half)).toBe('budget')
    expect(await store.outputs.missingRoom('ada', 1)).toBe('budget')

    await addSession(store, 'other', 'ada')
    await store.sessions.remove('s')
    expect(await store.outputs.missingRoom('ada', 60 * KiB)).toBeUndefined()
    expect(await store.outputs.append('other', 'c', 0, half)).toBeUndefined()
  })

  test('an output that lacks a part gets no later one, for the same reason, also when there is room again and after a restart', async () => {
    const store = await open(MiB)
    await addSession(store, 's', 'ada')
    await store.outputs.append('s', 'c', 0, Buffer.from('begin'))
    free = RESERVE
    expect(await store.outputs.append('s', 'c', 5, Buffer.from('middle'))).toBe('disk')
    free = Number.MAX_SAFE_INTEGER
    expect(await store.outputs.append('s', 'c', 11, Buffer.from('end'))).toBe('disk')
    await stores.pop()?.close()
    const again = await open(MiB)
    expect(await again.outputs.append('s', 'c', 5, Buffer.from('middle'))).toBe('disk')
    expect(Buffer.from(await again.outputs.read('s', 'c', 0, 100)).toString()).toBe('begin')
    expect(await again.outputs.get('s', 'c')).toMatchObject({ storedBytes: 5, totalBytes: 14 })
  })

  test('the reserve of the disk is kept for events of all users', async () => {
    const store = await open(MiB)
    await addSession(store, 's', 'ada')
    free = RESERVE + 2 * KiB
    expect(await store.outputs.missingRoom('ada', KiB)).toBeUndefined()
    expect(await store.outputs.missingRoom('ada', KiB + 1)).toBe('disk')
    expect(await store.outputs.append('s', 'c', 0, new Uint8Array(KiB + 1))).toBe('disk')
    await store.log.append('s', [note('still there')])
    expect(await store.log.read('s')).toHaveLength(1)
  })

  test.runIf(name === 'SQLite')('what an older version stored counts, and so does a copy', async () => {
    const before = Object.entries(sessionsMigrations).filter(([name]) => name < '013')
    const older = await openWriter<SessionsSchema>(where, Object.fromEntries(before))
    const row = { user_id: 'ada', cwd: '/', title: null, mode: 'manual', created_at: 1, updated_at: 1 }
    const session = { ...row, id: 's', last_seq: 1, running_prompt_id: null, owner_epoch: 0 }
    await older.db.insertInto('sessions').values(session).execute()
    const json = JSON.stringify(note('ä'.repeat(1000)))
    await older.db.insertInto('events').values({ session_id: 's', seq: 1, at: 1, json }).execute()
    const output = {
      session_id: 's',
      call_id: 'c',
      stored_bytes: 500,
      total_bytes: 500,
      lines: 0,
      complete: 1,
    }
    await older.db.insertInto('outputs').values(output).execute()
    await older.close()

    const size = Buffer.byteLength(json) + 500
    const store = await open(2 * size + 200)
    expect(await store.outputs.missingRoom('ada', size + 200)).toBeUndefined()
    expect(await store.outputs.missingRoom('ada', size + 201)).toBe('budget')
    const fork = { id: 'f', userId: 'ada', cwd: '/', mode: 'manual', title: null, at: 2 } as const
    await store.sessions.fork('s', fork, await store.log.read('s'))
    expect(await store.outputs.missingRoom('ada', size)).toBe('budget')
    const second = store.sessions.fork('s', { ...fork, id: 'g' }, await store.log.read('s'))
    await expect(second).rejects.toMatchObject({ code: 'store_full' })
    expect(await store.sessions.get('g')).toBeUndefined()
  })

  test.runIf(name === 'SQLite')('what waits in the write-ahead log needs its space again', async () => {
    const store = await open(100 * MiB)
    await addSession(store, 's', 'ada')
    const before = logBytes(where)
    await store.outputs.append('s', 'c', 0, new Uint8Array(8 * MiB))
    expect(logBytes(where)).toBeGreaterThan(before + 8 * MiB - 1)
    expect(logBytes(`${where}-none`)).toBe(0)
  })
})
