import { dockerFixture } from './docker-fixture.ts'
import { testBackend } from './contract.ts'

testBackend({ name: 'docker', ownProcesses: true, open: dockerFixture })
