import { randomBytes } from 'node:crypto'
import { join } from 'node:path'

import { afterEach, beforeEach, describe, expect, test } from 'vitest'

import { campaign } from '../../../../test/campaign.ts'
import { parseDockerHost } from '../../src/backends/docker/connection.ts'
import { createDockerBackend } from '../../src/backends/docker/backend.ts'
import type { Sandboxes } from '../../src/controller/sandboxes.ts'
import { testConfig } from '../support/config.ts'
import { dockerFixture, type DockerFixture, shell } from '../support/docker-fixture.ts'
import { numbered, numberedHash, Receipt, timesRun } from './numbered.ts'
import { type SpliceProxy, startSpliceProxy } from './splice-proxy.ts'

const engine = parseDockerHost(testConfig.dockerHost)
const BYTES = 16_000_000

let fixture: DockerFixture
let proxy: SpliceProxy
let controller: Sandboxes
beforeEach(async () => {
  fixture = await dockerFixture()
  if (engine.kind !== 'unix') return
  proxy = await startSpliceProxy(join(fixture.folder, 'p.sock'), engine.socketPath)
  const backend = createDockerBackend({ deployment: fixture.deployment, dockerHost: proxy.host })
  controller = fixture.controller({ backend })
})
afterEach(async () => {
  // First, so that nothing waits for a connection that is silent.
  await proxy?.close()
  await fixture.dispose()
})

describe.skipIf(engine.kind !== 'unix')('a connection to the engine while a command streams', () => {
  /**
   * Break it in the middle; how long until that is noticed, then the rest from a new connection.
   */
  async function broken(how: () => void): Promise<number> {
    const id = randomBytes(16).toString('hex')
    const receipt = new Receipt()
    const sandbox = await controller.acquire('ann')
    const first = await sandbox.run({ id, command: numbered(BYTES), merge: true })
    const reading = receipt.read(first, () => receipt.bytes > BYTES / 4)
    await reading
    how()
    const started = performance.now()
    // Bytes in flight are read to their end, then the silence is noticed.
    await expect(first.exit).rejects.toMatchObject({ code: 'sandbox_lost' })
    const ms = performance.now() - started
    const again = await controller.acquire('ann')
    expect(again).not.toBe(sandbox)
    expect((await shell(again, 'echo works')).output).toBe('works\n')
    // The engine gives every attached stream everything, so one that is silent holds the others up
    // after a megabyte, until the engine's kernel gives it up.
    proxy.giveUp()
    await receipt.read(
      (await again.attach(id, { stdout: receipt.bytes })) ?? expect.fail('the command is gone'),
    )
    expect(receipt.hash()).toBe(numberedHash(BYTES))
    expect(await timesRun(again)).toBe(1)
    return ms
  }

  test('cut: the command goes on, not a byte is lost or comes twice', async () => {
    await broken(() => proxy.reset())
  })

  test('silent but never closed: noticed within five seconds, and the same', async () => {
    const ms = await broken(() => proxy.silence())
    console.log(`a silent connection was noticed after ${Math.round(ms)} ms`)
    // Five seconds are promised; the rest is for a machine that is busy with other things.
    expect(ms).toBeLessThan(10_000)
  })

  test.runIf(campaign.full)('silent while idle: the next use finds out and the one after works', async () => {
    const sandbox = await controller.acquire('ann')
    await shell(sandbox, 'echo kept > file')
    proxy.silence()
    await expect(shell(sandbox, 'true')).rejects.toMatchObject({ code: 'sandbox_lost' })
    expect((await shell(await controller.acquire('ann'), 'cat file')).output).toBe('kept\n')
  })
})
