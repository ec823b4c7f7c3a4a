import { buildSbxd } from './build-sbxd.ts'
import { testBackend } from './contract.ts'
import { localProcessFixture } from './local-process-fixture.ts'

testBackend({ name: 'local-process', open: () => localProcessFixture(buildSbxd) })
