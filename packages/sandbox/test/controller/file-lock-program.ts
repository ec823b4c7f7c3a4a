/**
 * `file-lock-program.ts <file> <times> <ms>`: takes the lock and writes to `<file>.story` when it
 * enters and leaves.
 */
import { appendFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

import { withFileLock } from '../../src/controller/file-lock.ts'

const [file = '', times, holdMs] = process.argv.slice(2)
for (let nth = 0; nth < Number(times); nth++) {
  await withFileLock(file, async () => {
    appendFileSync(`${file}.story`, `in ${process.pid}\n`)
    await sleep(Number(holdMs))
    appendFileSync(`${file}.story`, `out ${process.pid}\n`)
  })
}
