import { dockerFixture } from '../../support/docker-fixture.ts'
import { testBackend } from '../../support/contract.ts'

testBackend({ name: 'docker', ownProcesses: true, open: dockerFixture })
