/**
 * A power cut at any moment loses no acknowledged append. The disk after a cut has what the last
 * successful sync covered; of each later sector it has the old bytes or the new ones.
 */
import { execFileSync } from 'node:child_process'
import fs, { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import { makeMeta } from '@sandlot/shared/chat/event-meta'
import { type SessionEvent, textOf } from '@sandlot/shared/chat/events'
import fc from 'fast-check'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { extent, randomFrom, sample } from '../../../../test/campaign.ts'
import { testFolder } from '../../../../test/folders.ts'
import { checkCopy, openSqliteAgain, openSqliteReader } from '../../src/database/sqlite-file.ts'
import { openWriter } from '../../src/database/database.ts'
import type { SessionStore } from '../../src/sessions/store.ts'
import { sessionsMigrations } from '../../src/store/migrations.ts'
import type { SessionsSchema } from '../../src/tables/sessions.ts'
import { openSessionReader, openSessionStore } from '../../src/store/open.ts'

const SECTOR = 512
/** SQLite syncs it alone, before it writes frames after it. */
const LOG_HEADER = 32

let folder: string
beforeEach(() => void (folder = testFolder('power-cut')))

/** Called before each sync of a log, and after each that succeeded; or the failure of each. */
let syncs: { begins?: () => void; succeeds?: () => void; failure?: Error } = {}
const { fdatasync } = fs

function observed(descriptor: number, done: fs.NoParamCallback): void {
  if (syncs.failure !== undefined) return void setImmediate(done, syncs.failure)
  syncs.begins?.()
  fdatasync(descriptor, (error) => {
    if (error === null) syncs.succeeds?.()
    done(error)
  })
}

beforeAll(() => {
  Object.assign(fs, { fdatasync: observed })
  syncBuiltinESMExports()
})
afterEach(() => void (syncs = {}))
afterAll(() => {
  Object.assign(fs, { fdatasync })
  syncBuiltinESMExports()
})

interface Cut {
  database: Buffer
  synced: Buffer
  written: Buffer
  /** Acknowledged appends. */
  acknowledged: number
}

function said(text: string): SessionEvent {
  const content = { type: 'text', text } as const
  return { sessionUpdate: 'agent_message_chunk', messageId: 'm', content, _meta: makeMeta({}, 1) }
}

async function openStore(path: string): Promise<SessionStore> {
  const store = await openSessionStore(path)
  await store.sessions.create({ id: 'a', userId: 'u', cwd: '/workspace', mode: 'yolo', at: 1 })
  return store
}

/** The disk of a store, cut at each sync and whenever `cut` is called. */
class Disk {
  readonly cuts: Cut[] = []
  readonly #path: string
  #acknowledged = 0
  #database: Buffer = Buffer.of()
  #synced: Buffer = Buffer.of()
  #syncing: Buffer = Buffer.of()

  constructor(path: string) {
    this.#path = path
    this.checkpoint()
    syncs = {
      begins: () => {
        this.cut()
        this.#syncing = this.#log()
      },
      succeeds: () => void (this.#synced = this.#syncing),
    }
  }

  acknowledged(): void {
    this.#acknowledged += 1
    this.cut()
  }

  cut(): void {
    const written = this.#log()
    this.cuts.push({
      database: this.#database,
      synced: this.#synced,
      written,
      acknowledged: this.#acknowledged,
    })
  }

  /** SQLite syncs the log before it and the database after it. */
  checkpoint(): void {
    const file = openSqliteAgain(this.#path)
    file.pragma('wal_checkpoint(passive)')
    file.close()
    this.#database = this.#read()
    this.#synced = this.#log()
  }

  #log(): Buffer {
    return readFileSync(`${this.#path}-wal`)
  }

  /** By another process: closing a descriptor of the database would drop this one's locks. */
  #read(): Buffer {
    return execFileSync('cat', [this.#path], { maxBuffer: 2 ** 30 })
  }
}

/**
 * The log after `cut`: of each sector that is not synced, the old bytes, the new ones, or anything
 * where they differ. SQLite relies on disks that leave unwritten bytes of a sector alone.
 */
function logAfter({ synced, written }: Cut, random: () => number): Buffer {
  const length = Math.max(synced.length, written.length)
  const log = Buffer.alloc(length)
  written.copy(log, 0, 0, LOG_HEADER)
  for (let from = LOG_HEADER; from < length; from = (Math.floor(from / SECTOR) + 1) * SECTOR) {
    const to = (Math.floor(from / SECTOR) + 1) * SECTOR
    const [before, after] = [synced.subarray(from, to), written.subarray(from, to)]
    if (before.equals(after) || random() < 0.5) after.copy(log, from)
    else if (random() < 0.8) before.copy(log, from)
    else
      for (let at = from; at < Math.min(to, length); at++)
        log[at] = synced[at] === written[at] ? (synced[at] ?? 0) : Math.floor(random() * 256)
  }
  const isLonger = written.length > synced.length && random() < 0.5
  return isLonger ? log.subarray(0, synced.length + Math.floor(random() * (length - synced.length))) : log
}

/** Its events are the first of those that were asked for, at least the acknowledged ones. */
async function expectRecovered(cut: Cut, log: Buffer, path: string): Promise<void> {
  writeFileSync(path, cut.database)
  writeFileSync(`${path}-wal`, log)
  const store = await openSessionStore(path)
  const events = await store.log.read('a')
  const numbers = events.map((event) =>
    event.sessionUpdate === 'agent_message_chunk' ? Number.parseInt(textOf(event), 10) : -1,
  )
  expect(numbers).toEqual(numbers.map((_, place) => place))
  expect(numbers.length).toBeGreaterThanOrEqual(cut.acknowledged)
  const file = openSqliteReader(path)
  expect(file.pragma('integrity_check', { simple: true })).toBe('ok')
  file.close()
  await store.close()
}

const step = fc.record({
  /** Sizes of appends that wait together. */
  group: fc.array(fc.constantFrom(10, 600, 9_000), { minLength: 1, maxLength: 6 }),
  next: fc.constantFrom('continue', 'wait', 'wait', 'checkpoint'),
})

const property = fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 12 }), async (steps) => {
  const here = mkdtempSync(join(folder, 'run-'))
  const path = join(here, 'sessions.db')
  const store = await openStore(path)
  const disk = new Disk(path)
  const pending: Promise<void>[] = []
  let count = 0
  for (const { group, next } of steps) {
    for (const bytes of group) {
      const stored = store.log.append('a', [said(`${count++} ${'x'.repeat(bytes)}`)])
      pending.push(stored.then(() => disk.acknowledged()))
    }
    if (next !== 'continue') await Promise.all(pending)
    if (next === 'checkpoint') disk.checkpoint()
  }
  await Promise.all(pending)
  syncs = {}
  await store.close()
  const random = randomFrom(JSON.stringify(steps))
  for (const [at, cut] of sample(JSON.stringify(steps), [...disk.cuts.entries()], 6))
    await expectRecovered(cut, logAfter(cut, random), join(here, `cut-${at}.db`))
})

test(
  'property: after a cut at any moment, every acknowledged append is there, and of the others a prefix',
  () => fc.assert(property, { numRuns: extent(8, 60) }),
  extent(30_000, 600_000),
)

test('a reader in another process shows nothing before it is on the disk', async () => {
  const path = join(folder, 'sessions.db')
  const store = await openStore(path)
  const reader = await openSessionReader(path)
  expect(await reader.log.read('a')).toEqual([])
  const writer = openSqliteAgain(path)
  writer.pragma('synchronous = NORMAL')
  writer.exec(`update sessions set title = 'new'`)
  let synced = 0
  syncs = { succeeds: () => void synced++ }
  expect((await reader.sessions.get('a'))?.title).toBe('new')
  expect(synced).toBe(1)
  await reader.sessions.get('a')
  expect(synced).toBe(1)
  writer.close()
  await reader.close()
  await store.close()
})

test('a writer syncs what an earlier process committed before it reads that', async () => {
  const path = join(folder, 'sessions.db')
  await (await openSessionStore(path)).close()
  const earlier = openSqliteAgain(path)
  earlier.pragma('synchronous = NORMAL')
  earlier.exec(`insert into removed_people (user_id, removed_at) values ('u', 1)`)
  const { db, close } = await openWriter<SessionsSchema>(path, sessionsMigrations)
  let synced = 0
  syncs = { begins: () => undefined, succeeds: () => void synced++ }
  expect(await db.selectFrom('removed_people').select('user_id').execute()).toEqual([{ user_id: 'u' }])
  expect(synced).toBe(1)
  await db.selectFrom('removed_people').select('user_id').execute()
  expect(synced).toBe(1)
  syncs = {}
  earlier.close()
  await close()
})

test('a reader opens a restored file, which has no log, before its writer does', async () => {
  const path = join(folder, 'sessions.db')
  await (await openSessionStore(path)).close()
  checkCopy(path)
  const reader = await openSessionReader(path)
  expect(await reader.sessions.list('u')).toEqual([])
  const store = await openStore(path)
  let synced = 0
  syncs = { succeeds: () => void synced++ }
  expect(await reader.sessions.list('u')).toHaveLength(1)
  expect(synced).toBe(1)
  await reader.close()
  await store.close()
})

test('a failed sync acknowledges nothing, then or later, and the store says so until the next start', async () => {
  const store = await openStore(join(folder, 'sessions.db'))
  syncs = { failure: new Error('EIO: i/o error, fdatasync') }
  const failure = { name: 'StorageError', code: 'io', message: expect.stringContaining('did not confirm') }
  const both = await Promise.allSettled([
    store.log.append('a', [said('two')]),
    store.log.append('a', [said('three')]),
  ])
  const rejected = { status: 'rejected', reason: expect.objectContaining(failure) }
  expect(both).toEqual([rejected, rejected])
  syncs = {}
  await expect(store.log.append('a', [said('four')])).rejects.toMatchObject(failure)
  await expect(store.log.read('a')).rejects.toMatchObject(failure)
  expect(await store.problem()).toMatchObject(failure)
  expect(await store.problem()).toMatchObject(failure)
  await store.close()
})
