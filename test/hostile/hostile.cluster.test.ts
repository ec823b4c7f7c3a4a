/** The same rows as on Docker, in sandboxes that are Pods. */
import { globSync } from 'node:fs'
import { statfs } from 'node:fs/promises'

import { describe } from 'vitest'

import { kubernetesFixture } from '../../packages/sandbox/test/support/kubernetes-fixture.ts'
import { noCluster, noOwnCluster, ownCluster } from '../cluster/cluster.ts'
import type { StageEngine } from './stage.ts'
import { playRows } from './suite.ts'

/** A namespace of its own on the test cluster. */
async function kubernetesEngine(): Promise<StageEngine> {
  const fixture = await kubernetesFixture()
  const { kubectl } = fixture
  const folder = noOwnCluster === undefined ? ownCluster().facts.folder : undefined
  return {
    name: 'kubernetes',
    fixture,
    async describe(id) {
      const objects = await kubectl('get', 'pods,pvc,events', '-o', 'json')
      return objects + (await kubectl('describe', 'pod', id))
    },
    log: (id) => kubectl('logs', '--all-containers', id),
    async hostFiles(id) {
      if (folder === undefined) return []
      const uid = await kubectl('get', 'pod', id, '-o', 'jsonpath={.metadata.uid}')
      const ours = [`node*/kubelet/pods/${uid}/**`, `node*/logs/*_${uid}/**`]
      return globSync(ours, { cwd: folder }).toSorted()
    },
    async freeBytes() {
      if (folder === undefined) return undefined
      const { bavail, bsize } = await statfs(folder)
      return bavail * bsize
    },
  }
}

describe.skipIf(noCluster !== undefined)(`on a cluster (${noCluster ?? 'of this run'})`, () => {
  playRows(kubernetesEngine)
})
