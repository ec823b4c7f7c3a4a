/** A Pod ends from outside while a command prints: the reason is said, and the files are kept. */
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'

import { afterEach, beforeEach, describe, expect, test } from 'vitest'

import { onlyInFullRun, sample } from '../../../../../test/campaign.ts'
import { noCluster, noOwnCluster, ownCluster } from '../../../../../test/cluster/cluster.ts'
import type { Sandboxes } from '../../../src/controller/sandboxes.ts'
import { kubernetesFixture, type KubernetesFixture } from '../../support/kubernetes-fixture.ts'
import { timesRun } from '../numbered.ts'
import { say, usable } from '../say.ts'
import { beginVictims } from './victims.ts'

let fixture: KubernetesFixture
beforeEach(async () => {
  fixture = await kubernetesFixture()
})
afterEach(() => fixture.dispose())

async function nodeOf(id: string): Promise<string> {
  return fixture.kubectl('get', 'pod', id, '-o', 'jsonpath={.spec.nodeName}')
}

/** Needs all of a node, and is more important than a sandbox. */
async function fillNode(node: string): Promise<void> {
  const cpu = await fixture.kubectl('get', 'node', node, '-o', 'jsonpath={.status.allocatable.cpu}')
  const name = `${fixture.namespace}-first`
  await fixture.apply({
    apiVersion: 'v1',
    kind: 'List',
    items: [
      {
        apiVersion: 'scheduling.k8s.io/v1',
        kind: 'PriorityClass',
        metadata: { name },
        value: 1_000,
      },
      {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: 'first' },
        spec: {
          priorityClassName: name,
          nodeSelector: { 'kubernetes.io/hostname': node },
          containers: [{ name: 'main', image: 'localhost/pause:test', resources: { requests: { cpu } } }],
        },
      },
    ],
  })
}

interface End {
  name: string
  words: RegExp
  strike: (id: string) => Promise<void>
}

const ENDS: End[] = [
  {
    name: 'deleted by a person',
    words: /^The Pod of the sandbox was deleted/,
    strike: async (id) => void (await fixture.kubectl('delete', 'pod', id, '--wait=false')),
  },
  {
    name: 'evicted',
    words: /evicted the sandbox \(EvictionByEvictionAPI/,
    async strike(id) {
      const file = join(fixture.folder, 'eviction.json')
      const { namespace } = fixture
      const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: id, namespace } }
      await writeFile(file, JSON.stringify(eviction))
      await fixture.kubectl(
        'create',
        '--raw',
        `/api/v1/namespaces/${namespace}/pods/${id}/eviction`,
        '-f',
        file,
      )
    },
  },
  {
    name: 'preempted',
    words: /make room for a Pod of higher priority/,
    async strike(id) {
      await fillNode(await nodeOf(id))
      await fixture.kubectl('wait', 'pod', 'first', '--for=condition=PodScheduled', '--timeout=60s')
      // The home of the sandbox is on that node.
      await fixture.kubectl('delete', 'pod', 'first', '--grace-period=0', '--force')
      await fixture.kubectl('delete', 'priorityclass', `${fixture.namespace}-first`)
    },
  },
]

describe.skipIf(noCluster !== undefined)(`a Pod that ends (${noCluster ?? 'on a cluster'})`, () => {
  test.each(sample('ends of a Pod', ENDS, 1))(
    '$name: the command fails with the reason, ran once, and the files are kept',
    async ({ words, strike }) => {
      const controller = fixture.controller()
      await say(controller, 'echo mine >kept')
      const { id } = await controller.acquire('ann')
      const victims = await beginVictims(controller)
      await victims.printing
      await strike(id)
      expect(await victims.failure()).toMatchObject({
        code: 'sandbox_lost',
        message: expect.stringMatching(words),
      })
      await usable(controller)
      expect(await say(controller, 'cat kept')).toBe('mine')
      expect(await timesRun(await controller.acquire('ann'))).toBe(1)
    },
  )

  test('a claim that a person deleted while the sandbox was stopped: never an empty home', async () => {
    const controller = fixture.controller()
    await say(controller, 'echo mine >kept')
    await controller.stop('ann')
    await fixture.kubectl('delete', 'pvc', '--all')
    await expect(controller.acquire('ann')).rejects.toMatchObject({ code: 'workspace_missing' })
    expect(await fixture.kubectl('get', 'pvc,pod', '-o', 'name')).toBe('')
  })
})

describe.skipIf(noOwnCluster !== undefined)(`a node that is cut (${noOwnCluster ?? 'of ours'})`, () => {
  test('no second Pod, the node’s name in words, and all is back with the node', async ({ skip }) => {
    onlyInFullRun(skip)
    const controller = fixture.controller()
    await say(controller, 'echo mine >kept')
    const { id } = await controller.acquire('ann')
    const node = await nodeOf(id)
    const number = node === 'node1' ? 1 : 2
    await ownCluster().cutNode(number, true)
    try {
      await expect
        .poll(() => fixture.kubectl('get', 'pod', id, '-o', 'jsonpath={.metadata.deletionTimestamp}'), {
          timeout: 120_000,
          interval: 1_000,
        })
        .not.toBe('')
      await expect(lastWords(controller)).resolves.toMatchObject({
        code: 'workspace_unreachable',
        message: expect.stringContaining(node),
      })
      expect((await fixture.kubectl('get', 'pod', '-o', 'name')).trim()).toBe(`pod/${id}`)
      const { volumes, copies } = fixture.backend.inventory
      const [volume] = await volumes.list()
      const copy = copies.read(volume?.name ?? '')
      await expect(copy[Symbol.asyncIterator]().next()).rejects.toMatchObject({
        code: 'workspace_unreachable',
        message: expect.stringContaining(node),
      })
    } finally {
      await ownCluster().cutNode(number, false)
    }
    await usable(controller)
    expect(await say(controller, 'cat kept')).toBe('mine')
  })
})

describe.skipIf(noOwnCluster !== undefined)(`no memory left (${noOwnCluster ?? 'on our cluster'})`, () => {
  test('all of a sandbox ends, which is told apart from a lost one, and is soon back', async () => {
    const limits = { ...fixture.spec().limits, memoryBytes: 2 ** 28, tmpBytes: 2 ** 25 }
    const controller = fixture.controller({ limits })
    await say(controller, 'echo mine >kept')
    const sandbox = await controller.acquire('ann')
    // Four, so that none is larger than the score of PID 1.
    const command = 'until test -e go; do sleep 0.1; done; for n in 1 2 3 4; do tail /dev/zero & done; wait'
    const hogs = await sandbox.run({ id: 'e'.repeat(32), command })
    hogs.exit.catch(() => undefined)
    const victims = await beginVictims(controller)
    await victims.printing
    await offerLast(sandbox.id)
    const began = performance.now()
    await say(controller, 'touch go').catch(() => undefined)
    expect(await victims.failure()).toMatchObject({
      code: 'out_of_memory',
      message: expect.stringMatching(
        /^The sandbox used more memory than its limit, and the kernel ended all/,
      ),
    })
    await usable(controller)
    console.log(`out of memory: back after ${Math.round(performance.now() - began)} ms`)
    expect(await say(controller, 'cat kept')).toBe('mine')
    expect(await timesRun(await controller.acquire('ann'))).toBe(1)
  })
})

/**
 * Offers the commands of a Pod to the OOM killer after its PID 1: the kernel ends all of a Pod at
 * once on nodes with cgroup v2, and one process on others.
 */
async function offerLast(id: string): Promise<void> {
  const uid = await fixture.kubectl('get', 'pod', id, '-o', 'jsonpath={.metadata.uid}')
  for (const file of globSync('/proc/[0-9]*/cgroup')) {
    try {
      const isFirst = /^NSpid:.*\t1$/m.test(readFileSync(join(dirname(file), 'status'), 'utf8'))
      if (readFileSync(file, 'utf8').includes(uid) && !isFirst)
        writeFileSync(join(dirname(file), 'oom_score_adj'), '0')
    } catch (error) {
      if (!(error instanceof Error && /ENOENT|ESRCH/.test(error.message))) throw error
    }
  }
}

/** Why there is no sandbox, once its stream is known to be lost. */
async function lastWords(controller: Sandboxes): Promise<unknown> {
  for (;;) {
    try {
      await (await controller.acquire('ann')).commands()
    } catch (error) {
      if (!(error instanceof Error) || !('code' in error) || error.code !== 'sandbox_lost') return error
    }
  }
}
