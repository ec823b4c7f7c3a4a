/** `_sandlot/watch`: the directories of a person's workspace that a page of theirs shows. */
import { EXT, watchParams } from '@sandlot/shared/acp/meta'
import { SandlotError } from '@sandlot/shared/base/errors'
import { parseParams } from '../errors.ts'
import type { WorkspaceParts } from '../parts.ts'
import type { ExtensionHandlers } from '../handler-context.ts'
import { withSandboxErrors } from '../sandbox-error.ts'

export function watchRequests({ watches }: WorkspaceParts): ExtensionHandlers {
  /** Connections that have asked before. */
  const known = new WeakSet<object>()
  return {
    [EXT.watch]: async ({ params, connection }): Promise<object> => {
      const { user, paths } = parseParams(watchParams, params, EXT.watch)
      if (user.role === 'guest') throw new SandlotError('forbidden', 'Guests have no files of their own.')
      const tell = (changed: readonly string[]): void => connection.filesChanged(changed)
      if (!known.has(connection)) {
        known.add(connection)
        const leave = (): void => void watches.set(connection, user.id, { paths: [], tell })
        connection.closed.addEventListener('abort', leave, { once: true })
      }
      return withSandboxErrors(async () => {
        await watches.set(connection, user.id, { paths: connection.closed.aborted ? [] : paths, tell })
        return {}
      })
    },
  }
}
