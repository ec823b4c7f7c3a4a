/** The proof in Pods: with interfaces that are down, and where the cluster has a network for them. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { noCluster } from '../../../../../test/cluster/cluster.ts'
import type { SandboxBackend } from '../../../src/backend.ts'
import { createFileLedger } from '../../../src/controller/file-ledger.ts'
import { createSandboxes } from '../../../src/controller/sandboxes.ts'
import { collect } from '../../../src/sbxd/collect.ts'
import { type KubernetesFixture, kubernetesFixture } from '../../support/kubernetes-fixture.ts'

describe.skipIf(noCluster !== undefined)(`the proof on a cluster (${noCluster ?? 'of this run'})`, () => {
  const stack = new AsyncDisposableStack()
  let fixture: KubernetesFixture
  beforeAll(async () => {
    fixture = await kubernetesFixture()
    stack.defer(() => fixture.dispose())
  }, 120_000)
  afterAll(() => stack.disposeAsync(), 120_000)

  async function acquire(backend: SandboxBackend, userId: string): Promise<string> {
    const folder = await mkdtemp(join(tmpdir(), 'sandlot-proof-'))
    const sandboxes = createSandboxes({
      backend,
      ledger: createFileLedger(join(folder, 'ledger.json')),
      deploymentKey: fixture.deploymentKey,
      deploymentId: fixture.deployment,
      image: fixture.image,
    })
    try {
      const sandbox = await sandboxes.acquire(userId)
      const { stdout } = await collect(sandbox, { command: 'ls /sys/class/net; echo ran' })
      return stdout
    } finally {
      await sandboxes.close()
      await rm(folder, { recursive: true, force: true })
    }
  }

  test('interfaces that are down are no network', async () => {
    expect(await acquire(fixture.backend, 'ada')).toBe('eth0\nlo\nran\n')
  }, 120_000)

  test('no command runs where something answers, and the error names what', async () => {
    const settings = { memoryRequest: 0.05, userNamespaces: false, networkDown: false }
    const open = await fixture.another({ settings })
    await expect(acquire(open, 'bob')).rejects.toMatchObject({
      code: 'unsafe_host',
      message: expect.stringMatching(/Network: a sandbox gets an answer from the API server.*its node/),
    })
  }, 120_000)
})
