/**
 * Stands for the tools of a server that tells them only to somebody who has signed in: calling it shows the link. Gone
 * with the first prompt after that.
 */
import { ToolError } from '../tools/tool-error.ts'
import type { Tool } from '../tools/tool.ts'
import { toolId } from './exposed-names.ts'
import { NeedsAuthFailure, linkTo } from './error.ts'
import { needsAuthOutcome } from './tool.ts'
import type { McpServer } from './server.ts'

export const CONNECT = 'connect'

export function connectTool(server: McpServer, name: string): Tool {
  return {
    id: toolId({ server: server.name, tool: CONNECT }),
    name,
    description: `${hasLink(server) ? `Shows the user the link to connect ${server.name}` : `Says what the user has to do to connect ${server.name}`}. Its tools are there with the next message after the user has done that.`,
    kind: 'other',
    input: { parameters: { type: 'object', properties: {} }, check: () => [] },
    readOnly: true,
    title: () => `Connect ${server.name}`,
    // oxlint-disable-next-line require-yield
    async *execute(_args, ctx) {
      const now = await server.offered(ctx.signal)
      if (now.state === 'ready')
        return {
          status: 'completed',
          forModel: `${server.name} is connected. Its tools are there with the user’s next message.`,
        }
      if (now.state === 'unavailable')
        throw new ToolError('unavailable', `${server.name} cannot be used now: ${now.why}.`)
      return needsAuthOutcome(new NeedsAuthFailure(server.name, now.connecting, {}))
    },
  }
}

/** What a client brought says only when it is asked whether there is one. */
function hasLink({ spec, last }: McpServer): boolean {
  return spec.signIn === undefined || (last?.state === 'needs_auth' && linkTo(last.connecting) !== undefined)
}
