/** `acquire` and reconnecting without an engine: real sbxd as a child process. */
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { SandboxBackend } from '../../src/backend.ts'
import { createLocalProcessBackend } from '../../src/backends/local-process.ts'
import { SandboxError } from '../../src/errors.ts'
import { createFileLedger } from '../../src/controller/file-ledger.ts'
import { createSandboxes } from '../../src/controller/sandboxes.ts'
import { sh } from '../contract/harness.ts'
import { buildSbxd } from '../support/build-sbxd.ts'

let directory: string
let local: SandboxBackend

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sandlot-sandboxes-'))
  local = createLocalProcessBackend({
    sbxd: await buildSbxd(directory),
    directory: join(directory, 'volumes'),
  })
}, 60_000)

afterAll(async () => {
  await local.inventory.close()
  await rm(directory, { recursive: true, force: true })
})

test('a stream that drops while its user is being stopped does not start the sandbox again', async () => {
  const streams: Duplex[] = []
  const listed = Promise.withResolvers<void>()
  const goOn = Promise.withResolvers<void>()
  let slow = false
  const backend: SandboxBackend = {
    ...local,
    async open(sandbox, signal) {
      const opened = await local.open(sandbox, signal)
      streams.push(opened.stream)
      return opened
    },
    async list(labels) {
      const found = await local.list(labels)
      if (slow) {
        slow = false
        listed.resolve()
        await goOn.promise
      }
      return found
    },
  }
  const sandboxes = createSandboxes({
    backend,
    ledger: createFileLedger(join(directory, 'ledger.json')),
    deploymentKey: randomBytes(32),
    deploymentId: 'test',
    image: 'none',
  })
  await sandboxes.acquire('ada')
  slow = true
  streams[0]?.destroy()
  // The reconnect has seen a running sandbox, and has not acted on it yet.
  await listed.promise
  const stopped = sandboxes.stop('ada')
  await sleep(100)
  goOn.resolve()
  await stopped
  await sleep(300)
  expect(await sandboxes.status('ada')).toMatchObject({ state: 'stopped', connected: false })
  await sandboxes.close()
})

test('a stream that breaks while its container starts ends nothing but the attempt', async () => {
  let breaks = 1
  const streams: Duplex[] = []
  const backend: SandboxBackend = {
    ...local,
    async open(sandbox, signal) {
      const opened = await local.open(sandbox, signal)
      streams.push(opened.stream)
      // In a turn of its own: after a promise of node:fs Node loses an exception of a tick.
      await sleep(1)
      if (breaks-- > 0) opened.stream.destroy(new Error('the connection was reset'))
      await sleep(1)
      return opened
    },
  }
  const sandboxes = createSandboxes({
    backend,
    ledger: createFileLedger(join(directory, 'breaks.json')),
    deploymentKey: randomBytes(32),
    deploymentId: 'breaks',
    image: 'none',
  })
  const sandbox = await sandboxes.acquire('bob')
  expect(await sandbox.commands()).toEqual([])
  expect(streams).toHaveLength(2)
  await sandboxes.close()
})

test('an aborted acquire starts nothing, and no rejection is left unhandled', async () => {
  const asked: string[] = []
  const sandboxes = createSandboxes({
    backend: {
      ...local,
      async create(spec) {
        asked.push(spec.slot)
        throw new SandboxError('engine_unavailable', 'The engine is away.')
      },
    },
    ledger: createFileLedger(join(directory, 'waits.json')),
    deploymentKey: randomBytes(32),
    deploymentId: 'waits',
    image: 'none',
  })
  const stopped = sandboxes.acquire('cid', AbortSignal.abort())
  await expect(stopped).rejects.toMatchObject({ code: 'cancelled' })
  // An unhandled rejection would end the process, and fails this test.
  await expect(sandboxes.acquire('dan')).rejects.toMatchObject({ code: 'engine_unavailable' })
  expect(asked).toHaveLength(1)
  await sandboxes.close()
})

test('a user id that is not 1 to 256 well-formed characters gets no sandbox, and no other user’s', async () => {
  const sandboxes = createSandboxes({
    backend: local,
    ledger: createFileLedger(join(directory, 'names.json')),
    deploymentKey: randomBytes(32),
    deploymentId: 'names',
    image: 'none',
  })
  // In UTF-8, as it is signed and stored, half a pair is the same as any other half.
  for (const userId of ['', 'x'.repeat(257), '\ud800', 'ann\udc00'])
    await expect(sandboxes.acquire(userId)).rejects.toMatchObject({ code: 'invalid_arguments' })
  await sandboxes.close()
})

test('a way out that is opened for a user reaches the sandbox that runs with the next acquire', async () => {
  let isOpen = false
  const sandboxes = createSandboxes({
    backend: local,
    ledger: createFileLedger(join(directory, 'opened.json')),
    deploymentKey: randomBytes(32),
    deploymentId: 'test',
    image: 'none',
    network: { egress: { allow: [], isOpenTo: () => isOpen } },
  })
  const way = 'echo [${HTTP_PROXY##*:}]'
  const before = await sandboxes.acquire('bob')
  expect((await sh(before, way)).out).toBe('[]\n')
  isOpen = true
  const both = await Promise.all([sandboxes.acquire('bob'), sandboxes.acquire('bob')])
  expect(both.every((one) => one === before)).toBe(true)
  const { out } = await sh(before, way)
  expect(out).toMatch(/^\[\d+\]\n$/)
  await sandboxes.acquire('bob')
  expect((await sh(before, way)).out).toBe(out)
  await sandboxes.close()
}, 60_000)
