import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Kysely, sql } from 'kysely'
import { beforeEach, expect, test } from 'vitest'
import { openWriter } from '../../src/database/database.ts'
import { StorageError } from '../../src/storage-error.ts'
import { healthText, startProblem } from '../../src/plain-words.ts'
import { testFolder } from '../../../../test/folders.ts'

let folder: string
beforeEach(() => void (folder = testFolder('health')))

const migrations = {
  '001': async (db: Kysely<unknown>) => void (await sql`create table t (x text)`.execute(db)),
}

test('full: known from a write that failed, over with one that succeeds', async () => {
  const { db, health, close } = await openWriter(join(folder, 'x.db'), migrations)
  expect(health.problem()).toBeUndefined()
  await sql`pragma max_page_count = 4`.execute(db)
  const write = sql`insert into t values (${'x'.repeat(100_000)})`.execute(db)
  const error: unknown = await write.catch((thrown: unknown) => health.typed(thrown))
  expect(error).toMatchObject({ code: 'full' })
  // The header’s page is there: a write that needs no room succeeds.
  expect(health.problem()).toBeUndefined()
  await close()
})

test('damaged: known from a read that failed, until the next start', async () => {
  const path = join(folder, 'x.db')
  const first = await openWriter(path, migrations)
  for (let row = 0; row < 50; row++) await sql`insert into t values (${'x'.repeat(2_000)})`.execute(first.db)
  await first.close()
  const bytes = readFileSync(path)
  bytes.fill(0xff, bytes.length / 2)
  writeFileSync(path, bytes)
  const { db, health, close } = await openWriter(path, migrations)
  expect(health.problem()).toBeUndefined()
  const read = sql`select sum(length(x)) from t`.execute(db)
  const error: unknown = await read.catch((thrown: unknown) => health.typed(thrown))
  expect(error).toMatchObject({ code: 'corrupt' })
  expect(health.problem()).toBe(error)
  expect(health.problem()).toBe(error)
  await close()
})

test('the text has no path; a start names what prevents it', () => {
  const words = (['full', 'io', 'unreachable', 'corrupt'] as const).map((code) =>
    healthText(new StorageError(code, '/data/x.db: no')),
  )
  expect(words.join()).not.toContain('/')
  expect(new Set(words).size).toBe(4)
  const full = Object.assign(new Error('ENOSPC: no space left on device'), {
    code: 'ENOSPC',
    path: '/data/x',
  })
  expect(startProblem(full)).toBe('/data/x cannot be written: there is no space left on its disk; make room.')
  expect(startProblem(new StorageError('corrupt', '/data/x.db: damaged.'))).toBe('/data/x.db: damaged.')
  expect(startProblem(new TypeError('a bug'))).toBeUndefined()
})
