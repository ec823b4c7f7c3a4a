/** `_sandlot/terminals`: a person's own terminals, for our own service. */
import { EXT } from '@sandlot/shared/acp/meta'
import { SandlotError } from '@sandlot/shared/base/errors'
import { actorOf } from '../actor.ts'
import type { WorkspaceParts } from '../parts.ts'
import type { ExtensionHandlers } from '../handler-context.ts'
import { withSandboxErrors } from '../sandbox-error.ts'

export function terminalsRequests(parts: WorkspaceParts) {
  return {
    [EXT.terminals]: async ({ params: { user, ask } }): Promise<object> => {
      const { shell } = parts
      const { terminals, streams } = shell
      // An open terminal can still be listed and closed by a user who lost the tool.
      if ((ask.do === 'open' || ask.do === 'attach') && !shell.mayUse(user.id, 'terminal'))
        throw new SandlotError(
          'forbidden',
          'Terminals are switched off for you. An administrator can allow them.',
        )
      return withSandboxErrors(async () => {
        switch (ask.do) {
          case 'list':
            return { terminals: await terminals.list(user.id) }
          case 'open':
            return terminals.open(user.id, { columns: ask.columns, rows: ask.rows }, actorOf(user))
          case 'attach': {
            const terminal = await terminals.find(user.id, ask.id)
            return { ticket: streams.offer((socket) => terminal.show(socket, ask.from)) }
          }
          case 'close':
            await (await terminals.find(user.id, ask.id)).close()
            return {}
        }
      })
    },
  } satisfies Partial<ExtensionHandlers>
}
