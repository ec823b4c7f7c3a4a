/** A process killed at any moment loses nothing that it has acknowledged. */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { nodeEnvironment } from '../../../../test/config.ts'
import { openSqliteReader } from '../../src/database/sqlite-file.ts'
import { openSessionStore } from '../../src/store/open.ts'
import { message } from '../support/crash-message.ts'

const CHILD = join(import.meta.dirname, '../support/crash-child.ts')

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sandlot-crash-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

/** Runs the child, kills it after `lines` acknowledgements and a random moment, and returns what it acknowledged. */
async function runAndKill(path: string, lines: number): Promise<{ event: number; output: number }> {
  const child = spawn(process.execPath, ['--conditions=sandlot-source', CHILD, path], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: nodeEnvironment(),
  })
  let said = ''
  child.stdout.setEncoding('utf8').on('data', (data: string) => {
    const before = said.split('\n').length
    said += data
    if (before <= lines && said.split('\n').length > lines)
      setTimeout(() => child.kill('SIGKILL'), Math.random() * 30)
  })
  const [complaints] = await Promise.all([
    text(child.stderr),
    new Promise((resolve) => child.on('close', resolve)),
  ])
  expect(complaints).toBe('')
  // The last line may be cut.
  const acknowledged = said.split('\n').slice(0, -1)
  const last = (kind: string): number =>
    Number(acknowledged.findLast((line) => line.startsWith(kind))?.split(' ')[1] ?? 0)
  return { event: last('event'), output: last('output') }
}

test.each([1, 2, 40, 150])('killed after %i acknowledgements', async (lines) => {
  const path = join(folder, 'sessions.db')
  const acknowledged = await runAndKill(path, lines)
  const store = await openSessionStore(path)
  try {
    const events = await store.log.read('s')
    expect(events.length).toBeGreaterThanOrEqual(acknowledged.event)
    expect(events.length % 2).toBe(0)
    expect(events).toEqual(
      events.map((_, index) => {
        const event = message(index + 1)
        return { ...event, _meta: { sandlot: { ...event._meta.sandlot, seq: index + 1 } } }
      }),
    )
    const row = await store.sessions.get('s')
    expect(row?.lastSeq).toBe(events.length)
    const promptId = events.length === 0 ? null : `p${events.length - 1}`
    expect(row?.runningPromptId).toBe(promptId)
    if (promptId !== null) {
      expect(await store.log.findSubmission('u', promptId)).toEqual({ sessionId: 's', promptId })
    }

    const info = await store.outputs.get('s', 'c')
    expect(info?.storedBytes ?? 0).toBeGreaterThanOrEqual(acknowledged.output)
    const output = await store.outputs.read('s', 'c', 0, Number.MAX_SAFE_INTEGER)
    expect(output).toHaveLength(info?.storedBytes ?? 0)
    expect(output.every((byte, index) => byte === (Math.floor(index / 1_000) & 255))).toBe(true)
    const file = openSqliteReader(path)
    expect(file.pragma('integrity_check', { simple: true })).toBe('ok')
    file.close()

    const next = await store.log.append('s', [message(events.length + 1)])
    expect(next[0]?._meta.sandlot.seq).toBe(events.length + 1)
  } finally {
    await store.close()
  }
})
