import { spawn } from 'node:child_process'
import { chmodSync, existsSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import { beforeEach, describe, expect, test } from 'vitest'
import { openReader, openWriter } from '../../src/database/database.ts'
import type { Migrations } from '../../src/database/database.ts'
import { lockFile, waitForLock } from '../../src/database/lock.ts'
import { openSqliteReader } from '../../src/database/sqlite-file.ts'
import { testFolder } from '../../../../test/folders.ts'

interface Schema {
  notes: { text: string }
}

const addTable =
  (name: string): Migrations[string] =>
  (db) =>
    db.schema.createTable(name).addColumn('text', 'text').execute()
const first: Migrations = { '001_notes': addTable('notes') }
const second: Migrations = { ...first, '002_more': addTable('more') }
const broken: Migrations = {
  ...second,
  '003_broken': async (db) => {
    await db.schema.createTable('half').addColumn('text', 'text').execute()
    throw new Error('half way')
  },
}

let folder: string
let path: string
beforeEach(() => {
  folder = testFolder('database')
  path = join(folder, 'deep', 'x.db')
})

function tables(): unknown[] {
  const file = openSqliteReader(path)
  const names = file
    .prepare("select name from sqlite_master where type = 'table' and name not like 'kysely%' order by name")
    .pluck()
    .all()
  file.close()
  return names
}

/** Name → mode of every file beside the database, and of itself. */
function modes(): Record<string, string> {
  const names = readdirSync(dirname(path)).toSorted()
  const modeOf = (name: string): string => (statSync(join(dirname(path), name)).mode & 0o777).toString(8)
  return Object.fromEntries(names.map((name) => [name, modeOf(name)]))
}

describe('the mode of files', () => {
  test('a database, its log, its locks and its copies are 0600', async () => {
    await (await openWriter<Schema>(path, first)).close()
    const { db, close } = await openWriter<Schema>(path, second)
    await db.insertInto('notes').values({ text: 'x' }).execute()
    expect(modes()).toEqual({
      'x.db': '600',
      'x.db-shm': '600',
      'x.db-wal': '600',
      'x.db.before-002_more': '600',
      'x.db.migrating': '600',
    })
    await close()
  })

  test('the mode of an existing database is set, and of the log that a kill has left', async () => {
    const killed = await openWriter<Schema>(path, first)
    await killed.db.insertInto('notes').values({ text: 'x' }).execute()
    for (const name of readdirSync(dirname(path))) chmodSync(join(dirname(path), name), 0o644)
    const { close } = await openWriter<Schema>(path, first)
    expect(new Set(Object.values(modes()))).toEqual(new Set(['600']))
    await close()
    await killed.close()
  })

  test('with 0640 the group reads the database and its log, and neither locks nor copies', async () => {
    await (await openWriter<Schema>(path, first)).close()
    const { db, close } = await openWriter<Schema>(path, second, 0o640)
    await db.insertInto('notes').values({ text: 'x' }).execute()
    expect(modes()).toEqual({
      'x.db': '640',
      'x.db-shm': '640',
      'x.db-wal': '640',
      'x.db.before-002_more': '600',
      'x.db.migrating': '600',
    })
    await close()
  })

  test('a second attempt to take a lock in the same process does not drop it', () => {
    const lock = lockFile(path)
    expect(lockFile(path)).toBeUndefined()
    lock?.release()
    expect(lockFile(path)?.release()).toBeUndefined()
  })
})

describe('the writer', () => {
  test('makes folder and file, with a sync of its own after commits and foreign keys on', async () => {
    const { db, close } = await openWriter<Schema>(path, first)
    const setting = async (name: string): Promise<unknown> => {
      const { rows } = await sql.raw<Record<string, unknown>>(`pragma ${name}`).execute(db)
      return Object.values(rows[0] ?? {})[0]
    }
    expect(await setting('journal_mode')).toBe('wal')
    expect(await setting('synchronous')).toBe(1)
    expect(await setting('foreign_keys')).toBe(1)
    expect(await setting('busy_timeout')).toBe(5_000)
    await close()
    expect(existsSync(`${path}.before-001_notes`)).toBe(false)
  })

  test('keeps a copy before it migrates an existing file', async () => {
    const old = await openWriter<Schema>(path, first)
    await old.db.insertInto('notes').values({ text: 'kept' }).execute()
    await old.close()
    await (await openWriter<Schema>(path, second)).close()
    expect(tables()).toEqual(['more', 'notes'])
    const copy = await openReader<Schema>(`${path}.before-002_more`, Object.keys(first))
    expect(await copy.db.selectFrom('notes').selectAll().execute()).toEqual([{ text: 'kept' }])
    await copy.close()
  })

  test('a failed migration leaves the file as it was', async () => {
    await (await openWriter<Schema>(path, first)).close()
    await expect(openWriter(path, broken)).rejects.toMatchObject({ code: 'migration_failed' })
    await (await openWriter<Schema>(path, first)).close()
    await (await openWriter<Schema>(path, second)).close()
    expect(tables()).toEqual(['more', 'notes'])
  })

  test('a newer file is refused, by the reader too, with the copy that can be restored', async () => {
    await (await openWriter<Schema>(path, first)).close()
    await (await openWriter<Schema>(path, second)).close()
    for (const failure of [openWriter(path, first), openReader(path, Object.keys(first))]) {
      await expect(failure).rejects.toMatchObject({ code: 'newer_schema' })
      await expect(failure).rejects.toThrow(`${path}.before-002_more`)
    }
  })

  test('a file that is no database is refused by name', async () => {
    const note = join(folder, 'note.txt')
    writeFileSync(note, 'not a database at all, but long enough to be looked at as one '.repeat(40))
    await expect(openWriter(note, first)).rejects.toMatchObject({
      code: 'cannot_open',
      message: expect.stringContaining(note),
    })
  })

  test('several at once: one migrates, the others find nothing to do', async () => {
    const writers = await Promise.all(Array.from({ length: 4 }, () => openWriter<Schema>(path, second)))
    for (const writer of writers) await writer.close()
    expect(tables()).toEqual(['more', 'notes'])
  })
})

describe('the reader', () => {
  test('waits for the file and for the schema', async () => {
    const waiting = openReader<Schema>(path, Object.keys(second), { waitMs: 10_000 })
    await (await openWriter<Schema>(path, first)).close()
    await sleep(150)
    const writer = await openWriter<Schema>(path, second)
    const reader = await waiting
    await writer.db.insertInto('notes').values({ text: 'later' }).execute()
    expect(await reader.db.selectFrom('notes').selectAll().execute()).toEqual([{ text: 'later' }])
    await expect(reader.db.insertInto('notes').values({ text: 'no' }).execute()).rejects.toThrow('readonly')
    await reader.close()
    await writer.close()
  })

  test('gives up with a sentence, or when aborted', async () => {
    await expect(openReader(path, Object.keys(first), { waitMs: 0 })).rejects.toMatchObject({
      code: 'not_migrated',
    })
    const stop = new AbortController()
    const waiting = openReader(path, Object.keys(first), { signal: stop.signal })
    stop.abort(new Error('stopped'))
    await expect(waiting).rejects.toThrow()
  })
})

describe('the lock', () => {
  const HOLDER = `
    const { lockFile } = await import(process.argv[1])
    const lock = lockFile(process.argv[2])
    process.stdout.write(lock === undefined ? 'taken' : 'held')
    // Holds the lock too: the end of an object that nothing refers to is the end of its lock.
    setInterval(() => lock, 1000)`
  const hold = (lock: string) =>
    spawn(
      process.execPath,
      [
        '--conditions=sandlot-source',
        '--input-type=module',
        '-e',
        HOLDER,
        join(import.meta.dirname, '../../src/database/lock.ts'),
        lock,
      ],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    )

  test('is held by one, and free again when released', () => {
    const lock = lockFile(join(folder, 'run', 'agent.lock'))
    expect(lock).toBeDefined()
    expect(lockFile(join(folder, 'run', 'agent.lock'))).toBeUndefined()
    lock?.release()
    lock?.release()
    const again = lockFile(join(folder, 'run', 'agent.lock'))
    expect(again).toBeDefined()
    again?.release()
  })

  test('dies with its process; the file that stays is no lock', async () => {
    const path = join(folder, 'agent.lock')
    const child = hold(path)
    expect(await new Promise((resolve) => child.stdout.once('data', (data) => resolve(String(data))))).toBe(
      'held',
    )
    expect(lockFile(path)).toBeUndefined()
    await expect(waitForLock(path, 100)).rejects.toMatchObject({ code: 'locked' })
    const waiting = waitForLock(path, 10_000)
    child.kill('SIGKILL')
    const lock = await waiting
    expect(existsSync(path)).toBe(true)
    lock.release()
  })
})
