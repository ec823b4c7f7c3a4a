/** The servers of a deployment, put together from their parts; owned and closed by the agent. */
import type { Sandbox } from '@sandlot/sandbox/sandbox'
import type { Tool, ToolLog } from '../tools/tool.ts'
import { McpServers } from './mcp-servers.ts'
import type { SecretStore } from './oauth-access.ts'
import { type SignedIn, SignIns } from './oauth-sign-ins.ts'
import { makeServer } from './open-server.ts'
import { createProcessGuard } from './process-guard.ts'
import type { ServerSpec } from './server-spec.ts'

export interface OpenMcpOptions {
  specs: readonly ServerSpec[]
  builtin: readonly Tool[]
  /** Absolute; homes of the servers of the deployment. */
  folder: string
  secrets: SecretStore
  /** Where authorization servers send users back to. */
  redirectUrl: string
  sandbox: (userId: string, signal: AbortSignal) => Promise<Sandbox>
  log: ToolLog
}

export interface Mcp {
  readonly servers: McpServers
  /** A user is back from an authorization server. Never rejects. */
  finishSignIn(userId: string, answer: URLSearchParams): Promise<SignedIn>
  /** End every server. Never rejects. */
  close(): Promise<void>
}

/** Starts nothing; see `McpServers.start`. @throws ToolDefinitionError for the built-in tools. */
export function openMcp(options: OpenMcpOptions): Mcp {
  const { specs, builtin, folder, secrets, redirectUrl, sandbox, log } = options
  const guard = createProcessGuard()
  const signIns = new SignIns({ secrets, redirectUrl, log })
  const parts = {
    folder,
    guard,
    secret: (userId: string, name: string) => secrets.get(userId, name),
    sandbox,
    access: signIns.access.bind(signIns),
    log,
  }
  const servers = new McpServers({
    specs,
    builtin,
    log,
    makeServer: (spec, userId) => makeServer(spec, userId, parts),
  })
  return {
    servers,
    finishSignIn: (userId, answer) => signIns.finish(userId, answer),
    async close() {
      await servers.close()
      await Promise.allSettled([guard.close()])
    },
  }
}
