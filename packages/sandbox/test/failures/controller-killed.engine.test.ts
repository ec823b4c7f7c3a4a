import { describe } from 'vitest'

import { extent } from '../../../../test/campaign.ts'
import { testConfig } from '../support/config.ts'
import { dockerFixture } from '../support/docker-fixture.ts'
import { testKilledController } from './controller-killed.ts'

describe('SIGKILL of the controller', () => {
  testKilledController(async () => {
    const fixture = await dockerFixture()
    const docker = { deployment: fixture.deployment, dockerHost: testConfig.dockerHost }
    return { ...fixture, engine: { docker }, users: extent(4, 200) }
  })
})
