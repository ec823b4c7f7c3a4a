/** `_sandlot/retention`: how long things are kept, for administrators. */
import { EXT } from '@sandlot/shared/acp/meta'
import { SandlotError } from '@sandlot/shared/base/errors'
import { type RetentionPreview, type RetentionView, retentionParams } from '@sandlot/shared/admin/retention'
import { actorOf } from '../actor.ts'
import { parseParams } from '../errors.ts'
import type { AdminParts } from '../parts.ts'
import type { ExtensionHandlers } from '../handler-context.ts'

export function retentionRequests({ retention }: AdminParts): ExtensionHandlers {
  return {
    [EXT.retention]: async ({ params }): Promise<RetentionView | RetentionPreview> => {
      const { user, ask } = parseParams(retentionParams, params, EXT.retention)
      if (user.role !== 'admin') throw new SandlotError('forbidden', 'Only an administrator can do this.')
      return retention.answer(ask, actorOf(user))
    },
  }
}
