/** `_sandlot/watch`: the directories of a person's workspace that a page of theirs shows. */
import { EXT } from '@sandlot/shared/acp/meta'
import type { WorkspaceParts } from '../parts.ts'
import type { ExtensionHandlers } from '../handler-context.ts'
import { withSandboxErrors } from '../sandbox-error.ts'

export function watchRequests({ watches }: WorkspaceParts) {
  /** Connections that have asked before. */
  const known = new WeakSet<object>()
  return {
    [EXT.watch]: async ({ params: { user, paths }, connection }): Promise<object> => {
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
  } satisfies Partial<ExtensionHandlers>
}
