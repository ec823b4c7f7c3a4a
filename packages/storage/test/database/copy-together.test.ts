/** Copies of databases during writes of their process. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { extent } from '../../../../test/campaign.ts'
import { copyTogether } from '../../src/database/copy-together.ts'
import { openSqliteReader, openSqliteWriter, refuseWrites } from '../../src/database/sqlite-file.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sandlot-copies-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const pair = () =>
  ['a', 'b'].map((name) => ({ path: join(folder, `${name}.db`), target: join(folder, `${name}.copy`) }))

function countIn(path: string): number {
  const file = openSqliteReader(path)
  try {
    return file.prepare<[], number>('select n from t').pluck().get() ?? Number.NaN
  } finally {
    file.close()
  }
}

test('all copies are of one moment, whatever is written meanwhile', async () => {
  // Two would be enough to copy, and too few to find a moment that is longer than it should be.
  const copies = Array.from({ length: 12 }, (_, n) => ({
    path: join(folder, `${n}.db`),
    target: join(folder, `${n}.copy`),
  }))
  const program = new URL('../support/pair-child.ts', import.meta.url).pathname
  const args = ['--conditions=sandlot-source', program, ...copies.map(({ path }) => path)]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  try {
    await once(child.stdout, 'data')
    const seen: number[] = []
    for (let n = 0; n < extent(8, 100); n += 1) {
      // Against the order of the writer, which so would be met.
      await copyTogether(copies.toReversed())
      const counts = copies.map(({ target }) => countIn(target))
      expect(counts, 'counted up one after the other').toEqual(counts.toSorted((a, b) => b - a))
      expect((counts[0] ?? 0) - (counts.at(-1) ?? 0)).toBeOneOf([0, 1])
      seen.push(counts[0] ?? 0)
    }
    expect(seen.at(-1)).toBeGreaterThan(seen[0] ?? 0)
  } finally {
    child.kill('SIGKILL')
    await once(child, 'close')
  }
})

test('a copy stands alone, and names its migrations', async () => {
  const copies = pair()
  for (const { path } of copies) {
    const file = openSqliteWriter(path)
    file.exec("create table kysely_migration (name text); insert into kysely_migration values ('001_first')")
    file.close()
  }
  expect(await copyTogether(copies)).toEqual([{ migrations: ['001_first'] }, { migrations: ['001_first'] }])
  for (const { target } of copies) expect(existsSync(`${target}-wal`)).toBe(false)
})

test('a database that another holds is waited for, and nobody waits with it', async () => {
  const copies = pair()
  for (const { path } of copies) openSqliteWriter(path).exec('create table t (n)').close()
  const held = refuseWrites(copies[1]?.path ?? '')
  const copying = copyTogether(copies)
  await new Promise((resolve) => setTimeout(resolve, 120))
  const first = refuseWrites(copies[0]?.path ?? '')
  expect(first).toBeDefined()
  first?.close()
  held?.close()
  await expect(copying).resolves.toHaveLength(2)
})

test('a damaged page is found in the copy', async () => {
  const copies = pair()
  for (const { path } of copies) {
    const file = openSqliteWriter(path)
    file.exec(
      "create table t (n); create index i on t (n); insert into t select value from json_each('[1,2,3]')",
    )
    file.pragma('wal_checkpoint(TRUNCATE)')
    file.close()
  }
  const damaged = openSync(copies[0]?.path ?? '', 'r+')
  writeSync(damaged, Buffer.alloc(4096, 0xff), 0, 4096, 4096)
  closeSync(damaged)
  await expect(copyTogether(copies)).rejects.toMatchObject({ code: 'corrupt' })
})
