/**
 * The setup of compose: ai-agent writes `sessions.db`, the service reads it as another user of its
 * group.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { chmodSync, chownSync, mkdtempSync, rmSync } from 'node:fs'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { nodeEnvironment } from '../../../../test/config.ts'
import { GROUP, type Read } from '../support/other-user-child.ts'

const reason = process.getuid?.() === 0 ? undefined : 'only root can be two other users'

class Child {
  readonly process: ChildProcess
  readonly #lines: AsyncIterator<string>

  constructor(act: 'write' | 'read', path: string) {
    const program = join(import.meta.dirname, '../support/other-user-child.ts')
    const child = spawn(process.execPath, ['--conditions=sandlot-source', program, act, path], {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: nodeEnvironment(),
    })
    this.process = child
    this.#lines = createInterface(child.stdout)[Symbol.asyncIterator]()
  }

  async line(): Promise<string> {
    const { value, done } = await this.#lines.next()
    if (done === true) throw new Error('the child has ended')
    return value
  }

  async ask(): Promise<Read> {
    this.process.stdin?.write('\n')
    return JSON.parse(await this.line()) as Read
  }

  /** Its acknowledged number after `events` more. */
  async written(events: number): Promise<number> {
    for (let n = 1; n < events; n++) await this.line()
    return Number(await this.line())
  }

  async end(how: 'in good order' | 'SIGKILL'): Promise<void> {
    const closed = once(this.process, 'close')
    if (how === 'SIGKILL') this.process.kill(how)
    else this.process.stdin?.end('\n')
    // Or it waits for a reader of what it prints.
    this.process.stdout?.resume()
    await closed
  }
}

let folder: string
let path: string
let children: Child[]
const start = (act: 'write' | 'read'): Child => {
  const child = new Child(act, path)
  children.push(child)
  return child
}

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sandlot-other-user-'))
  path = join(folder, 'sessions.db')
  children = []
  if (reason !== undefined) return
  chownSync(folder, GROUP, GROUP)
  chmodSync(folder, 0o750)
})
afterEach(() => {
  for (const child of children) child.process.kill('SIGKILL')
  rmSync(folder, { recursive: true })
})

const REFUSED = {
  'sessions.db': 'EACCES',
  'sessions.db-wal': 'EACCES',
  'sessions.db-shm': 'EACCES',
  'another file': 'EACCES',
}

test.skipIf(reason)(
  `the group reads while the log is written, over a kill and a new start, and writes nothing${reason ? ` (skipped: ${reason})` : ''}`,
  async () => {
    const writer = start('write')
    await writer.written(1)
    const reader = start('read')
    let known = 0
    for (let n = 0; n < 5; n++) {
      known = await writer.written(20)
      const { lastSeq, failed, tries } = await reader.ask()
      expect(failed).toBeUndefined()
      expect(lastSeq).toBeGreaterThanOrEqual(known)
      expect(tries).toEqual(REFUSED)
    }

    await writer.end('SIGKILL')
    expect((await reader.ask()).lastSeq).toBeGreaterThanOrEqual(known)
    expect((await start('read').ask()).lastSeq).toBeGreaterThanOrEqual(known)

    const next = start('write')
    known = await next.written(20)
    expect((await reader.ask()).lastSeq).toBeGreaterThanOrEqual(known)
    await next.end('in good order')
    // It keeps its connection, so the log has stayed.
    expect((await reader.ask()).lastSeq).toBeGreaterThanOrEqual(known)
  },
)

test.skipIf(reason)(
  `without a writer and its log the reader is not ready, and opens once a writer has started${reason ? ` (skipped: ${reason})` : ''}`,
  async () => {
    const writer = start('write')
    await writer.written(1)
    await writer.end('in good order')
    const reader = start('read')
    expect((await reader.ask()).failed).toBe('not_migrated')
    const known = await start('write').written(3)
    expect((await reader.ask()).lastSeq).toBeGreaterThanOrEqual(known)
  },
)
