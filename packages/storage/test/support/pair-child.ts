/** Counts in one database after the other, for ever. Killed by copy-together.test.ts. */
import { writeSync } from 'node:fs'
import { openSqliteWriter } from '../../src/database/sqlite-file.ts'

const files = process.argv.slice(2).map((path) => openSqliteWriter(path))
// At full speed, so that a moment longer than one commit is detected.
for (const file of files) file.pragma('synchronous = OFF')
for (const file of files) file.exec('create table if not exists t (n integer); insert into t values (0)')
writeSync(1, 'counting\n')
for (;;) for (const file of files) file.exec('update t set n = n + 1')
