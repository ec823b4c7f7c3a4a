import { beforeEach, describe } from 'vitest'

import { extent, oneRunOfThree } from '../../../../../test/campaign.ts'
import { noCluster } from '../../../../../test/cluster/cluster.ts'
import { kubernetesFixture } from '../../support/kubernetes-fixture.ts'
import { testKilledController } from '../controller-killed.ts'

describe.skipIf(noCluster !== undefined)(`SIGKILL of the controller (${noCluster ?? 'on a cluster'})`, () => {
  beforeEach(({ task, skip }) => oneRunOfThree(`cluster ${task.name}`, skip))
  testKilledController(async () => {
    const fixture = await kubernetesFixture()
    return { ...fixture, engine: { kubernetes: fixture.options }, users: extent(2, 20) }
  })
})
