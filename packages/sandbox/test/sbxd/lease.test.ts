import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Duplex } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'

import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'

import { connectSandbox, type ConnectedSandbox } from '../../src/sbxd/client.ts'
import { buildSbxd } from '../support/build-sbxd.ts'

/** Maximum that sbxd stores: running, or ended and not acknowledged. */
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

interface Started {
  sandbox: ConnectedSandbox
  pid: number
  ended: Promise<unknown>
  running: () => boolean
}

/** An sbxd with a short lease, and a controller that says nothing unless it sends pings. */
async function start(heartbeatMs: number, leaseMs = LEASE_MS): Promise<Started> {
  const args = ['--workspace', directory, '--lease', String(leaseMs / 1_000)]
  const process = spawn(binary, args, { stdio: ['pipe', 'pipe', 'ignore'] })
  child = process
  const stream = Duplex.from({ readable: process.stdout, writable: process.stdin })
  const sandbox = await connectSandbox({ id: 'lease', stream, key: randomBytes(32), epoch: 1, heartbeatMs })
  const { pid = 0 } = process
  return { sandbox, pid, ended: once(process, 'exit'), running: () => process.exitCode === null }
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

/** Voluntary sleeps so far; NaN when it has ended. */
async function rounds(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')
  return Number(/^voluntary_ctxt_switches:\t(\d+)$/m.exec(status)?.[1])
}

test('a pause that is longer than the lease does not use it up, and what is left of it runs on after', async () => {
  const leaseMs = 5 * LEASE_MS
  const { sandbox, pid, ended, running } = await start(0, leaseMs)
  await sandbox.run({ id: newId(), command: 'sleep 300' })
  process.kill(pid, 'SIGSTOP')
  await sleep(leaseMs + 2 * LEASE_MS)
  const before = await rounds(pid)
  process.kill(pid, 'SIGCONT')
  // It looks at its lease before it sleeps again: a word from here must not come first, or that
  // would renew it.
  await expect.poll(() => rounds(pid), { timeout: 30_000 }).not.toBe(before)
  expect(running()).toBe(true)
  expect(await sandbox.commands()).toHaveLength(1)
  expect(await ended).toEqual([0, null])
})

test('a controller that only receives keeps it', async () => {
  const { sandbox, running } = await start(LEASE_MS / 20)
  // Without a process for each line, which would take longer than a heartbeat on a slow machine.
  const command = 'exec 3<> <(sleep 300); while echo; do read -rt 0.005 -u 3; done'
  await sandbox.run({ id: newId(), command })
  await sleep(3 * LEASE_MS)
  expect(running()).toBe(true)
})

test('a controller that says something now and then keeps it', async () => {
  const { sandbox, running } = await start(LEASE_MS / 5)
  await sleep(2 * LEASE_MS)
  expect(running()).toBe(true)
  expect(await sandbox.commands()).toEqual([])
})

test('unacknowledged ends take no room for longer than the lease', async () => {
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
