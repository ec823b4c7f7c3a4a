/** Starts and ends the threads of a store: `end-threads.ts <folder>`. */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { openSqliteWriter } from '../../src/database/sqlite-file.ts'
import { endThread, startThread, threadFile } from '../../src/store/thread.ts'

const path = join(process.argv[2] ?? '', 'threads.db')
openSqliteWriter(path).close()
let ended = 0
for (const name of ['checkpoint-worker', 'search-worker'])
  for (let ms = 0; ms < 90; ms += 3) {
    const worker = startThread(threadFile(name), path).on('error', () => undefined)
    await sleep(ms)
    await endThread(worker)
    ended++
  }
console.log(`ended ${ended}`)
