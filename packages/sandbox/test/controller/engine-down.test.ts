/** An engine whose socket is closed: how long those who want a sandbox wait for it. */
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import http from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import { afterEach, beforeEach, expect, test } from 'vitest'

import { createDockerBackend } from '../../src/backends/docker/backend.ts'
import { createFileLedger } from '../../src/controller/file-ledger.ts'
import { createSandboxes, type Sandboxes } from '../../src/controller/sandboxes.ts'

const ENGINE_MS = 1_500

let folder: string
let socketPath: string
let sandboxes: Sandboxes
let close: () => Promise<void>
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sandlot-down-'))
  socketPath = join(folder, 'engine.sock')
  const backend = createDockerBackend({ deployment: 'dep', dockerHost: `unix://${socketPath}` })
  sandboxes = createSandboxes({
    backend,
    ledger: createFileLedger(join(folder, 'ledger.json')),
    deploymentKey: randomBytes(32),
    deploymentId: 'dep',
    image: 'none',
    patience: { engineMs: ENGINE_MS },
  })
  close = async () => {
    await sandboxes.close()
    await backend.inventory.close()
  }
})
afterEach(async () => {
  await close()
  await rm(folder, { recursive: true, force: true })
})

/** Failure, and milliseconds until it. */
async function failure(userId: string): Promise<{ ms: number; error: unknown }> {
  const began = performance.now()
  const error: unknown = await sandboxes.acquire(userId).catch((thrown: unknown) => thrown)
  return { ms: performance.now() - began, error }
}

const down = expect.objectContaining({ code: 'engine_unavailable', unreachable: true })

test('all wait for it together, and a later caller does not wait again', async () => {
  const first = failure('ann')
  await sleep(ENGINE_MS / 2)
  const second = failure('bob')
  const [ann, bob, cid] = [await first, await second, await failure('cid')]
  expect([ann.error, bob.error, cid.error]).toEqual([down, down, down])
  expect(ann.ms).toBeGreaterThanOrEqual(ENGINE_MS)
  expect(bob.ms).toBeLessThan(ENGINE_MS)
  expect(cid.ms).toBeLessThan(ENGINE_MS / 2)
})

test('one that has answered in between is waited for again', async () => {
  await failure('ann')
  const engine = http.createServer((_, response) => response.writeHead(500).end('{"message":"not well"}'))
  await new Promise<void>((resolve) => engine.listen(socketPath, resolve))
  expect((await failure('ann')).error).toMatchObject({ unreachable: false })
  engine.closeAllConnections()
  await new Promise((resolve) => engine.close(resolve))
  const again = await failure('ann')
  expect(again.error).toEqual(down)
  expect(again.ms).toBeGreaterThanOrEqual(ENGINE_MS)
})
