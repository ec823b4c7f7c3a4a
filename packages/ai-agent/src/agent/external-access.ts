/** External access of an agent: its MCP servers, and commands outside of the workspace. */
import { join } from 'node:path'
import { SANDBOX_BACKENDS } from '@sandlot/shared/config/sandbox-backends'
import { MCP_SIGN_IN_PATH } from '@sandlot/shared/base/mcp-client'
import { type Fetch, refusingFetch, safeFetch } from '@sandlot/shared/node/safe-fetch'
import { hostRefusal } from '../approval/hosts.ts'
import type { AgentConfig } from '../config/config.ts'
import type { Log } from '../log.ts'
import { documentUrlOf } from '../mcp/oauth/client.ts'
import { type Mcp, openMcp } from '../mcp/open-mcp.ts'
import type { CallParts } from '../session/parts.ts'
import type { Tool } from '../tools/tool.ts'
import type { AgentStores } from './stores.ts'
import type { PersonSandboxes } from './person-sandboxes.ts'

const PRIVATE_OWN_SERVER_HINT = '; an administrator can add a server there, or allow you to'
const PRIVATE_SERVER_HINT =
  '; only the operator of this Sandlot can name a server there (mcpServers in its configuration)'

/** Servers of clients and people reach less than those of the configuration. */
export function openAgentMcp(
  config: AgentConfig,
  log: Log,
  { rules, secrets, servers }: AgentStores,
  sandboxes: PersonSandboxes,
  builtin: readonly Tool[],
): Mcp {
  const refusalFor =
    (userId: string) =>
    async (host: string, port: number): Promise<string | undefined> =>
      hostRefusal(await rules.of(userId), host, port)
  return openMcp({
    specs: config.mcpServers,
    registry: servers,
    builtin,
    folder: join(config.dataFolder, 'mcp'),
    secrets,
    redirectUrl: `${config.publicUrl}${MCP_SIGN_IN_PATH}`,
    documentUrl: documentUrlOf(config.publicUrl),
    sandbox: (userId, signal) => sandboxes.acquire(userId, signal),
    clientServerFetch: (userId) => ({
      server: safeFetch({ refusal: refusalFor(userId), loopback: true, hint: PRIVATE_SERVER_HINT }),
      authority: safeFetch({ refusal: refusalFor(userId) }),
    }),
    ownServerFetch: (userId) => {
      const refusal = refusalFor(userId)
      const toPublic = safeFetch({ refusal, hint: PRIVATE_OWN_SERVER_HINT })
      const toAll = refusingFetch(refusal)
      const server: Fetch = (url, init) =>
        servers.may(userId) === 'local' ? toAll(url, init) : toPublic(url, init)
      return { server, authority: server }
    },
    log,
  })
}

/** See `CallParts`. */
export function makeExternalAccess(
  config: AgentConfig,
  { network }: PersonSandboxes,
  mcp: Mcp,
): CallParts['externalAccess'] {
  return (sessionId, userId, held) =>
    !SANDBOX_BACKENDS[config.sandbox.backend].isolates
      ? 'keeps commands from nothing'
      : network.reachesAny(userId, held)
        ? 'has network access'
        : mcp.inSandbox(userId, sessionId)
          ? 'has an MCP server in it'
          : undefined
}
