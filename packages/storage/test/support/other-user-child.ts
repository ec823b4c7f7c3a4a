/**
 * One of two users of a group, on one `sessions.db`. Starts as root and changes its user first.
 * `write <path>` appends for ever and prints what is durable; a line on stdin closes the store.
 * `read <path>` answers each line on stdin with what it reads and what it is refused.
 */
import { closeSync, openSync, writeSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { openSessionReader, openSessionStore } from '../../src/store/open.ts'
import { StorageError } from '../../src/storage-error.ts'
import { message } from './crash-message.ts'

export const GROUP = 20_001
const USERS = { write: 20_001, read: 20_003 }

export interface Read {
  lastSeq: number | undefined
  /** Instead: the code of what opening threw. */
  failed?: string
  /** Result of opening the file with these flags: `open`, or a code. */
  tries: Record<string, string>
}

async function write(path: string): Promise<void> {
  const store = await openSessionStore(path, { mode: 0o640 })
  const stopping = new AbortController()
  process.stdin.once('data', () => stopping.abort())
  if ((await store.sessions.get('s')) === undefined)
    await store.sessions.create({ id: 's', userId: 'u', cwd: '/workspace', mode: 'yolo', at: 0 })
  const { lastSeq = 0 } = (await store.sessions.get('s')) ?? {}
  for (let n = lastSeq + 1; !stopping.signal.aborted; n++) {
    await store.log.append('s', [message(n)])
    writeSync(1, `${n}\n`)
  }
  await store.close()
  process.stdin.destroy()
}

function attempt(path: string, flags: string): string {
  try {
    closeSync(openSync(path, flags))
    return 'open'
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : String(error)
  }
}

async function read(path: string): Promise<void> {
  let reader: Awaited<ReturnType<typeof openSessionReader>> | undefined
  for await (const _ of createInterface(process.stdin)) {
    const answer: Read = { lastSeq: undefined, tries: {} }
    try {
      reader ??= await openSessionReader(path, { waitMs: 0 })
      answer.lastSeq = (await reader.sessions.get('s'))?.lastSeq
    } catch (error) {
      answer.failed = error instanceof StorageError ? error.code : String(error)
    }
    for (const end of ['', '-wal', '-shm']) answer.tries[`sessions.db${end}`] = attempt(path + end, 'r+')
    answer.tries['another file'] = attempt(join(dirname(path), 'another file'), 'w')
    writeSync(1, `${JSON.stringify(answer)}\n`)
  }
  await reader?.close()
}

if (import.meta.main) {
  const [act = '', path = ''] = process.argv.slice(2)
  process.setgroups?.([])
  process.setgid?.(GROUP)
  process.setuid?.(act === 'write' ? USERS.write : USERS.read)
  await (act === 'write' ? write(path) : read(path))
}
