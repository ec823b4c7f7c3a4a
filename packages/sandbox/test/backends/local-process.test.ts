import { buildSbxd } from '../support/build-sbxd.ts'
import { testBackend } from '../support/contract.ts'
import { localProcessFixture } from '../support/local-process-fixture.ts'

testBackend({ name: 'local-process', open: () => localProcessFixture(buildSbxd) })
