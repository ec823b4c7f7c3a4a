import { readSeccompProfile } from '@sandlot/sandbox/backends/docker/seccomp'
import { createDockerBackend } from '@sandlot/sandbox/backends/docker/backend'
import { campaign } from '../../../test/campaign.ts'
import { testConfig } from '../../sandbox/test/support/config.ts'
import { testBackend } from '../../sandbox/test/support/contract.ts'
import type { BackendFixture } from '../../sandbox/test/contract/harness.ts'
import { dockerFixture } from '../../sandbox/test/support/docker-fixture.ts'
import { startGate } from './gate-fixture.ts'

async function open(): Promise<BackendFixture> {
  const direct = await dockerFixture()
  const gate = await startGate(testConfig.dockerHost, {
    deployment: direct.deployment,
    images: [testConfig.image],
    seccompProfile: await readSeccompProfile(),
  })
  const backend = createDockerBackend({ deployment: direct.deployment, dockerHost: gate.dockerHost })
  return {
    backend,
    spec: direct.spec,
    async dispose() {
      await backend.inventory.close()
      await direct.dispose()
      await gate.close()
    },
  }
}

// A gate could spoil the making and finding of containers: an ordinary run asks for these. The
// stream is bytes to it.
const notPermitted = 'containers that copy files are not permitted by the gate'
const skips = {
  'copies a workspace in use, and fills a new one with the same': notPermitted,
  'takes back a workspace that cannot be filled, and reads none that is missing': notPermitted,
}
const part = campaign.full ? {} : { lifecycleOnly: true }
testBackend({ name: 'docker through the gate', ownProcesses: true, open, skips, ...part })
