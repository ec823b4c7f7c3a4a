/** What the handlers of one client's requests work with. */
import type { SandboxFiles } from '@sandlot/sandbox/sandbox'
import type { AgentMetricsAnswer, AgentStatus, AgentUser } from '@sandlot/shared/acp-meta'
import type { RemovedData } from '@sandlot/shared/api'
import { messageOf } from '@sandlot/shared/errors'
import type { Mode } from '@sandlot/shared/mode'
import type { Rule } from '@sandlot/shared/rules'
import type { InstructionRows } from '@sandlot/storage/sessions/instructions'
import type { SignedIn } from '../mcp/oauth/sign-ins.ts'
import type { UserSecrets } from '../secrets/user-secrets.ts'
import type { SessionManager } from '../session/manager.ts'
import type { DeploymentInstructions } from '../config/instructions.ts'
import type { ToolLog } from '../tools/tool.ts'
import type { ClientServers } from './client-servers.ts'
import type { ClientConnection } from './connection.ts'
import { toRequestError } from './errors.ts'

export interface AcpParts {
  manager: SessionManager
  /** Of a new session that does not say. */
  defaultMode: Mode
  /** Whether any of the configured models has image input. Absent: it has none. */
  takesImages?: boolean
  /** What people have entrusted to the agent. Absent: nobody can. */
  secrets?: UserSecrets
  /** What people want the agent to keep to. Absent: nobody can say. */
  instructions?: InstructionRows
  /** What the configuration says to everybody beside them. */
  configuredInstructions?: DeploymentInstructions
  /** The rules that hold for this person. Absent: none do. */
  rulesOf?: (userId: string) => Promise<readonly Rule[]>
  /** The files of this person, whose sandbox is started for it. Absent: there are no sandboxes. */
  workspace?: (userId: string) => Promise<SandboxFiles>
  /** Somebody asks whom the service has let in. */
  saw?: (user: AgentUser) => void
  /** The highest mode that an administrator lets this user have, where the configuration says so. */
  modeCeilingOf?: (userId: string, said: Mode | undefined) => Mode | undefined
  /** A person is back from where an MCP server let them sign in. Absent: there are no such servers. */
  finishSignIn?: (userId: string, answer: URLSearchParams) => Promise<SignedIn>
  /** Everything of this person ends (`people/removal.ts`). Absent: nobody is removed here. */
  removePerson?: (userId: string, data: RemovedData) => Promise<void>
  /** The MCP servers of clients. Absent: nobody has tools here, so there is no use for any. */
  clientServers?: ClientServers
  /** What requests had beside their messages, as JSON, by its digest. Absent: nobody knows. */
  requestFrame?: (hash: string) => Promise<string | undefined>
  /** What was counted since the start. Absent: nothing is. */
  metrics?: () => Promise<AgentMetricsAnswer>
  status(): Promise<AgentStatus>
  version: string
  log: ToolLog
}

/** A request of one of our extensions. `params` are not checked yet. */
export interface ExtensionRequest {
  params: unknown
  connection: ClientConnection
  /** Aborted with `$/cancel_request`, and when the connection closes. */
  signal: AbortSignal
}

/** By method, for every connection. */
export type ExtensionHandlers = Readonly<Record<string, (request: ExtensionRequest) => Promise<unknown>>>

export type Handler<C, R> = (context: C) => Promise<R>

export interface Serving {
  parts: AcpParts
  /** There from the first message on. */
  readonly connection: ClientConnection
  /** A handler whose every failure goes out as one of our errors. (That `initialize` comes first is the SDK's business.) */
  handled: <C extends object, R>(handle: Handler<C, R>) => Handler<C, R>
}

export function makeServing(parts: AcpParts, connection: () => ClientConnection): Serving {
  const report = (bug: unknown): void =>
    parts.log.warn({ error: messageOf(bug), stack: stackOf(bug) }, 'a request failed')
  return {
    parts,
    get connection() {
      return connection()
    },
    handled: (handle) => async (context) => {
      try {
        return await handle(context)
      } catch (error) {
        throw toRequestError(error, report)
      }
    },
  }
}

function stackOf(thrown: unknown): string | undefined {
  return thrown instanceof Error ? thrown.stack : undefined
}
