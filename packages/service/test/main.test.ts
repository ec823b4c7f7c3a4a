/** The service as a process: the line that people and the launcher wait for, and how it ends. */
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { nodeEnvironment } from '../../../test/config.ts'

const MAIN = join(import.meta.dirname, '../src/main.ts')
let folder: string
const started: ChildProcess[] = []

interface Running {
  child: ChildProcess
  output(): string
  /** The first line on stdout that fits. */
  line(pattern: RegExp): Promise<string>
  ended: Promise<number | null>
}

function start(env: Record<string, string>): Running {
  const child = spawn(process.execPath, ['--conditions=sandlot-source', MAIN], {
    env: { ...nodeEnvironment(), SANDLOT_DATA: folder, LOG_LEVEL: 'info', PORT: '0', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  started.push(child)
  let text = ''
  const heard = new Set<() => void>()
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (piece: Buffer) => {
      text += piece.toString()
      for (const tell of heard) tell()
    })
  }
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  return {
    child,
    ended,
    output: () => text,
    line: (pattern) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const line = text.split('\n').find((one) => pattern.test(one))
          if (line !== undefined) resolve(line)
        }
        heard.add(look)
        void ended.then(() => reject(new Error(`it ended: ${text}`)))
        look()
      }),
  }
}

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sandlot-main-'))
})

afterEach(async () => {
  for (const child of started.splice(0)) if (child.exitCode === null) child.kill('SIGKILL')
  await rm(folder, { recursive: true })
})

test('says where to go, without an agent too, and stops in good order', async () => {
  const service = start({})
  const line = await service.line(/^Sandlot is ready: /)
  const url = /^Sandlot is ready: (http:\/\/127\.0\.0\.1:\d+)\/setup\?token=[0-9a-z]{50}$/.exec(line)?.[1]
  expect((await fetch(`${url}/healthz`)).status).toBe(200)
  expect((await fetch(`${url}/readyz`)).status).toBe(503)
  service.child.kill('SIGTERM')
  expect(await service.ended).toBe(0)
  expect(service.output()).toContain('"msg":"stopped"')
})

test('a port that is taken and a wrong setting are said in words, and end it', async () => {
  const first = start({})
  const port = new URL((await first.line(/^Sandlot is ready: /)).slice('Sandlot is ready: '.length)).port
  // Of the same data there is one at a time, whatever the port.
  const second = start({ PORT: port, SANDLOT_DATA: join(folder, 'another') })
  const wrong = start({ PORT: 'many', SANDLOT_PUBLIK_URL: 'x' })
  expect(await second.ended).toBe(1)
  expect(second.output()).toMatch(/Another program listens there; stop it, or set PORT\./)
  expect(await wrong.ended).toBe(1)
  expect(wrong.output()).toMatch(/PORT: must be a whole number/)
  expect(wrong.output()).toMatch(/did you mean SANDLOT_PUBLIC_URL\?/)
  first.child.kill('SIGINT')
  expect(await first.ended).toBe(0)
})
