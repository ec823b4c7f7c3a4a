import type { SessionUpdate } from '@agentclientprotocol/sdk'
import type { SessionEvent } from '@sandlot/shared/chat/events'
import { expectTypeOf, test } from 'vitest'

// Checked by the compiler (`tsc -p tsconfig.json` includes the tests), not when it runs.
test('every event that we emit is a SessionUpdate of the SDK', () => {
  expectTypeOf<SessionEvent>().toExtend<SessionUpdate>()
  type Kinds = SessionEvent['sessionUpdate']
  expectTypeOf<Kinds>().toExtend<SessionUpdate['sessionUpdate']>()
})

test('one that the SDK does not know would be refused', () => {
  expectTypeOf<{ sessionUpdate: '_ours'; _meta: object }>().not.toExtend<SessionUpdate>()
  expectTypeOf<{ sessionUpdate: 'plan'; entries: string }>().not.toExtend<SessionUpdate>()
})
