import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Duplex } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'

import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'

import { connectSandbox, type ConnectedSandbox } from '../src/client.ts'
import { buildSbxd } from './build-sbxd.ts'

/** As many as sbxd keeps: running, or ended and not acknowledged. */
const MOST_COMMANDS = 256
const LEASE_MS = 1_000

let directory: string
let binary: string
let child: ChildProcess | undefined

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sandlot-lease-'))
  binary = await buildSbxd(directory)
}, 60_000)
afterEach(async () => {
  if (!child || child.exitCode !== null) return
  child.kill()
  await once(child, 'exit')
})
afterAll(() => rm(directory, { recursive: true, force: true }))

/** An sbxd with a short lease, and a controller that says nothing unless it sends pings. */
async function start(
  heartbeatMs: number,
): Promise<{ sandbox: ConnectedSandbox; ended: Promise<unknown>; running: () => boolean }> {
  const args = ['--workspace', directory, '--lease', String(LEASE_MS / 1_000)]
  const process = spawn(binary, args, { stdio: ['pipe', 'pipe', 'ignore'] })
  child = process
  const stream = Duplex.from({ readable: process.stdout, writable: process.stdin })
  const sandbox = await connectSandbox({ id: 'lease', stream, key: randomBytes(32), epoch: 1, heartbeatMs })
  return { sandbox, ended: once(process, 'exit'), running: () => process.exitCode === null }
}

const newId = (): string => randomBytes(16).toString('hex')

test('without a word from a controller for the length of the lease it ends, with all it runs', async () => {
  const { sandbox, ended } = await start(0)
  const command = await sandbox.run({ id: newId(), command: 'trap "" TERM; echo $$; sleep 300' })
  let pid = 0
  for await (const { data } of command.output) {
    pid = Number(Buffer.from(data).toString())
    break
  }
  expect(await ended).toEqual([0, null])
  expect(() => process.kill(pid, 0)).toThrow('ESRCH')
})

test('a controller that says something now and then keeps it', async () => {
  const { sandbox, running } = await start(LEASE_MS / 5)
  await sleep(2 * LEASE_MS)
  expect(running()).toBe(true)
  expect(await sandbox.commands()).toEqual([])
})

test('ends that nobody acknowledges take no room for longer than the lease', async () => {
  const { sandbox } = await start(LEASE_MS / 5)
  const run = async (): Promise<string> => {
    const command = await sandbox.run({ id: newId(), command: ['true'] })
    await command.exit
    return command.id
  }
  const first = await run()
  while ((await sandbox.commands()).length < MOST_COMMANDS) await run()
  await sleep(LEASE_MS + 100)
  await run()
  const kept = await sandbox.commands()
  expect(kept).toHaveLength(MOST_COMMANDS)
  expect(kept.map(({ id }) => id)).not.toContain(first)
})
