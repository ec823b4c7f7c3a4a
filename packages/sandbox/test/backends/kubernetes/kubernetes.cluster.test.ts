import { describe } from 'vitest'

import { noCluster } from '../../../../../test/cluster/cluster.ts'
import { testBackend } from '../../support/contract.ts'
import { kubernetesFixture } from '../../support/kubernetes-fixture.ts'

describe.skipIf(noCluster !== undefined)(`on a cluster (${noCluster ?? 'of this run'})`, () => {
  testBackend({
    name: 'kubernetes',
    open: kubernetesFixture,
    ownProcesses: true,
    slow: true,
    sbxdElsewhere: 'each run has them on Docker, with the same sbxd',
  })
})
