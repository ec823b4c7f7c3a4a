import { describe } from 'vitest'

import { noCluster } from '../../../../../test/cluster/cluster.ts'
import { testBackend } from '../../support/contract.ts'
import { kubernetesFixture } from '../../support/kubernetes-fixture.ts'

describe.skipIf(noCluster !== undefined)(`on a cluster (${noCluster ?? 'of this run'})`, () => {
  // All of them run on Docker each time, with the same sbxd.
  testBackend({ name: 'kubernetes', open: kubernetesFixture, ownProcesses: true, slow: true, drawn: 2 })
})
