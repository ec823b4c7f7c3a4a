/** What of `acquire` and its reconnecting needs no engine: real sbxd as a child process. */
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { SandboxBackend } from '../src/backend.ts'
import { createLocalProcessBackend } from '../src/backends/local-process.ts'
import { createFileLedger } from '../src/file-ledger.ts'
import { createSandboxes } from '../src/sandboxes.ts'
import { buildSbxd } from './build-sbxd.ts'

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
  await local.close()
  await rm(directory, { recursive: true, force: true })
})

test('a stream that drops while its user is being stopped does not start the sandbox again', async () => {
  const streams: Duplex[] = []
  const listed = Promise.withResolvers<void>()
  const goOn = Promise.withResolvers<void>()
  let slow = false
  const backend: SandboxBackend = {
    ...local,
    async openStream(id, signal) {
      const stream = await local.openStream(id, signal)
      streams.push(stream)
      return stream
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

test('who has no name of 1 to 256 characters that can be written down gets no sandbox, and nobody else’s', async () => {
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
