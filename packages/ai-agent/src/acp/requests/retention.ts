/** `_sandlot/retention`: how long things are kept, for administrators. */
import { EXT } from '@sandlot/shared/acp/meta'
import type { RetentionPreview, RetentionView } from '@sandlot/shared/admin/retention'
import { actorOf } from '../actor.ts'
import type { AdminParts } from '../parts.ts'
import type { ExtensionHandlers } from '../handler-context.ts'

export function retentionRequests({ retention }: AdminParts) {
  return {
    [EXT.retention]: async ({ params: { user, ask } }): Promise<RetentionView | RetentionPreview> => {
      return retention.answer(ask, actorOf(user))
    },
  } satisfies Partial<ExtensionHandlers>
}
