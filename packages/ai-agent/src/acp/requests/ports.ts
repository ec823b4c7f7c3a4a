/** `_sandlot/ports`: programs that listen in a person's own sandbox, for our own service. */
import type { Duplex } from 'node:stream'
import { SandboxError } from '@sandlot/sandbox/errors'
import { EXT } from '@sandlot/shared/acp/meta'
import { createWebSocketStream } from 'ws'
import type { ShellParts, WorkspaceParts } from '../parts.ts'
import type { ExtensionHandlers } from '../handler-context.ts'
import { withSandboxErrors } from '../sandbox-error.ts'

/** Longer than a ticket is good for. */
const UNCLAIMED_MS = 60_000

export function portsRequests(parts: WorkspaceParts) {
  return {
    [EXT.ports]: async ({ params: { user, ask } }): Promise<object> => {
      const { shell } = parts
      return withSandboxErrors(async () => {
        // A stopped sandbox has nothing that listens, so it is not started.
        const sandbox = await shell.connected(user.id)
        if (ask.do === 'list')
          return { awake: sandbox !== undefined, ports: (await sandbox?.ports.list()) ?? [] }
        if (sandbox === undefined)
          throw new SandboxError('not_found', 'Your sandbox is stopped, so nothing listens in it')
        return { ticket: offerConnection(shell.streams, await sandbox.ports.connect(ask.port)) }
      })
    },
  } satisfies Partial<ExtensionHandlers>
}

function offerConnection(streams: ShellParts['streams'], inside: Duplex): string {
  const unclaimed = setTimeout(() => inside.destroy(), UNCLAIMED_MS).unref()
  try {
    return streams.offer((socket) => {
      clearTimeout(unclaimed)
      join(createWebSocketStream(socket), inside)
    })
  } catch (error) {
    inside.destroy()
    throw error
  }
}

/** Each gets what the other says, and where one breaks the other does. */
function join(outside: Duplex, inside: Duplex): void {
  outside.pipe(inside)
  inside.pipe(outside)
  outside.on('error', () => inside.destroy())
  inside.on('error', () => outside.destroy())
  outside.on('close', () => inside.destroy())
  // A clean end was passed on by the pipe, and what is on its way still goes.
  inside.on('close', () => inside.readableEnded || outside.destroy())
}
