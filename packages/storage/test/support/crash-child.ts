/** Appends for ever and prints durable numbers on stdout. Killed by crash.test.ts. */
import { writeSync } from 'node:fs'
import { openSessionStore } from '../../src/store/open.ts'
import { message } from './crash-message.ts'

const [path = ''] = process.argv.slice(2)
const store = await openSessionStore(path)
await store.sessions.create({ id: 's', userId: 'u', cwd: '/workspace', mode: 'yolo', at: 0 })

async function events(): Promise<never> {
  for (let n = 1; ; n += 2) {
    const promptId = `p${n}`
    await store.log.append('s', [message(n), message(n + 1)], {
      runningPromptId: promptId,
      submission: { userId: 'u', requestId: promptId, promptId },
    })
    writeSync(1, `event ${n + 1}\n`)
  }
}

async function output(): Promise<never> {
  const piece = new Uint8Array(1_000)
  for (let offset = 0; ; offset += piece.length) {
    await store.outputs.append('s', 'c', offset, piece.fill((offset / piece.length) & 255))
    writeSync(1, `output ${offset + piece.length}\n`)
  }
}

await Promise.race([events(), output()])
