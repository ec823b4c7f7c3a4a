import { beforeEach, describe } from 'vitest'
import { testSessionRecords } from '../../../storage/test/support/contract.ts'
import { MemoryStore } from '../../src/plain/memory-store.ts'

describe('sessions store: memory', () => {
  let store: MemoryStore
  beforeEach(async () => {
    store = new MemoryStore()
    await store.sessions.create({
      id: 's',
      userId: 'ann',
      cwd: '/workspace',
      mode: 'auto-edit',
      at: 1_790_000_000_000,
    })
  })
  testSessionRecords(
    () => store,
    () => store,
  )
})
