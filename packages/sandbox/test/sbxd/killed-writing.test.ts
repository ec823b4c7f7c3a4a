/**
 * SIGKILL of sbxd while it writes a file: no handler runs, as for PID 1 of a container that the
 * host kills.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Duplex } from 'node:stream'

import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'

import { campaign, extent, randomFrom } from '../../../../test/campaign.ts'
import { connectSandbox, type ConnectedSandbox } from '../../src/sbxd/client.ts'
import { buildSbxd } from '../support/build-sbxd.ts'

const BYTES = 4_000_000

let directory: string
let binary: string
let workspace: string
let child: ChildProcess | undefined

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sandlot-killed-'))
  binary = await buildSbxd(directory)
}, 60_000)
beforeEach(async () => {
  workspace = join(directory, randomBytes(4).toString('hex'))
  await mkdir(workspace)
})
afterEach(() => kill())
afterAll(() => rm(directory, { recursive: true, force: true }))

async function start(): Promise<ConnectedSandbox> {
  const started = spawn(binary, ['--workspace', workspace], { stdio: ['pipe', 'pipe', 'ignore'] })
  // Bytes in flight to the killed one.
  started.stdin.on('error', () => {})
  child = started
  const stream = Duplex.from({ readable: started.stdout, writable: started.stdin })
  return connectSandbox({ id: 'killed', stream, key: randomBytes(32), epoch: 1, heartbeatMs: 0 })
}

async function kill(): Promise<void> {
  if (!child || child.exitCode !== null || child.signalCode !== null) return
  const gone = once(child, 'exit')
  child.kill('SIGKILL')
  await gone
}

/** Paths below the workspace of every file there, those that are not meant to be seen too. */
async function filesThere(): Promise<string[]> {
  const entries = await readdir(workspace, { recursive: true, withFileTypes: true })
  return entries.filter((entry) => entry.isFile()).map(({ name }) => name)
}

const content = (n: number): Buffer => Buffer.alloc(BYTES, String.fromCharCode(97 + (n % 26)))

test('with half of it there: the file is the old one, and the half is gone after the next start, with its folder', async () => {
  const { files } = await start()
  await files.write('whole', content(0))
  const writing = files.write('whole', content(1)).catch((error: unknown) => error)
  // Until some of the new bytes are on the disk, in whatever file it keeps them.
  await expect
    .poll(
      async () => {
        const others = (await readdir(workspace, { recursive: true })).filter((name) =>
          name.includes('staging'),
        )
        const sizes = await Promise.all(
          others.map((name) => stat(join(workspace, name)).catch(() => undefined)),
        )
        return sizes.reduce((sum, one) => sum + (one?.size ?? 0), 0)
      },
      { timeout: 30_000, interval: 0 },
    )
    .toBeGreaterThan(0)
  await kill()
  expect(await writing).toMatchObject({ code: 'sandbox_lost' })
  expect(await filesThere()).toHaveLength(2)
  expect((await readFile(join(workspace, 'whole'))).equals(content(0))).toBe(true)
  await start()
  expect(await readdir(workspace, { recursive: true })).toEqual(['whole'])
})

test('at any instant: the file is the last that was answered for or the one after, whole', async () => {
  const random = randomFrom(`${campaign.seed} sbxd killed while writing`)
  for (let round = 0; round < extent(5, 200); round += 1) {
    const { files } = await start()
    let answered = 0
    await files.write('whole', content(0))
    const writing = (async () => {
      for (;;) {
        await files.write('whole', content(answered + 1))
        answered += 1
      }
    })().catch((error: unknown) => error)
    await new Promise((resolve) => setTimeout(resolve, random() * 100))
    await kill()
    expect(await writing).toMatchObject({ code: 'sandbox_lost' })
    const there = await readFile(join(workspace, 'whole'))
    expect([content(answered), content(answered + 1)].some((one) => one.equals(there))).toBe(true)
    await start()
    expect(await readdir(workspace, { recursive: true })).toEqual(['whole'])
    await kill()
  }
})
