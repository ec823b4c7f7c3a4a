import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openSqliteWriter, type SqliteFile, withStatementCache } from '../../src/database/sqlite-file.ts'
import { testFolder } from '../../../../test/folders.ts'

let folder: string
let file: SqliteFile
let cached: ReturnType<typeof withStatementCache>
beforeEach(() => {
  folder = testFolder('statements')
  file = openSqliteWriter(join(folder, 'x.db'))
  file.exec('create table t (n integer); insert into t values (1), (2)')
  cached = withStatementCache(file)
})
afterEach(() => cached.close())

test('a statement is compiled once', () => {
  expect(cached.prepare('select n from t')).toBe(cached.prepare('select n from t'))
})

test('one whose rows are being read is left alone', () => {
  const sql = 'select n from t order by n'
  const seen: unknown[] = []
  for (const row of cached.prepare(sql).iterate([])) {
    const inner = cached.prepare(sql).all([])
    seen.push([row, inner.length])
  }
  expect(seen).toEqual([
    [{ n: 1 }, 2],
    [{ n: 2 }, 2],
  ])
})

test('the least lately used goes when there are too many, and long ones are not kept', () => {
  const kept = cached.prepare('select n from t')
  const dropped = cached.prepare('select 0 from t')
  for (let n = 1; n < 200; n++) {
    cached.prepare(`select ${n} from t`)
    cached.prepare('select n from t')
  }
  expect(cached.prepare('select n from t')).toBe(kept)
  expect(cached.prepare('select 0 from t')).not.toBe(dropped)
  const long = `select n from t where n in (${Array.from({ length: 400 }, () => '1').join(', ')})`
  expect(cached.prepare(long)).not.toBe(cached.prepare(long))
})

test('a column that came later is there', () => {
  const sql = 'select * from t where n = 1'
  expect(cached.prepare(sql).get([])).toEqual({ n: 1 })
  file.exec('alter table t add column later text')
  expect(cached.prepare(sql).get([])).toEqual({ n: 1, later: null })
})
