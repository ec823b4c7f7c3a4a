import { readSeccompProfile } from '@sandlot/sandbox/backends/docker/seccomp'
import { createDockerBackend } from '@sandlot/sandbox/backends/docker/backend'
import { testConfig } from '../../sandbox/test/config.ts'
import { testBackend } from '../../sandbox/test/contract.ts'
import { dockerFixture } from '../../sandbox/test/docker-fixture.ts'
import { startGate } from './gate-fixture.ts'

testBackend({
  name: 'docker through the gate',
  ownProcesses: true,
  async open() {
    const direct = await dockerFixture()
    const gate = await startGate(testConfig.dockerHost, {
      deployment: direct.deployment,
      image: testConfig.image,
      seccompProfile: await readSeccompProfile(),
    })
    const backend = createDockerBackend({ deployment: direct.deployment, dockerHost: gate.dockerHost })
    return {
      backend,
      spec: direct.spec,
      async dispose() {
        await backend.close()
        await direct.dispose()
        await gate.close()
      },
    }
  },
})
