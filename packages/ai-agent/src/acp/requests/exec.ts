/** `_sandlot/exec`: a command of a person, for our own service. */
import { EXT } from '@sandlot/shared/acp/meta'
import { SandlotError } from '@sandlot/shared/base/errors'
import { actorOf } from '../actor.ts'
import type { ProtocolParts, WorkspaceParts } from '../parts.ts'
import type { ExtensionHandlers } from '../handler-context.ts'
import { modeOfNew } from './session.ts'

export function execRequests(parts: ProtocolParts & WorkspaceParts) {
  return {
    [EXT.exec]: async ({ params: { user, mode: wanted, defaultMode = parts.defaultMode, ...command } }) => {
      const { shell } = parts
      if (!shell.mayUse(user.id, 'exec'))
        throw new SandlotError(
          'forbidden',
          'Commands without the agent are switched off for you. An administrator can allow them.',
        )
      const ceiling = parts.modeCeilingOf(user.id, user.modeCeiling) ?? user.modeCeiling
      const mode = modeOfNew(wanted, defaultMode, ceiling)
      const { execs, streams } = shell
      return {
        ticket: streams.offer(
          (socket) => void execs.run(socket, { ...command, userId: user.id, mode }, actorOf(user)),
        ),
      }
    },
  } satisfies Partial<ExtensionHandlers>
}
