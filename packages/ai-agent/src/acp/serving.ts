/** What the handlers of one client's requests work with. */
import type { AgentStatus } from '@sandlot/shared/acp-meta'
import { messageOf } from '@sandlot/shared/errors'
import type { Mode } from '@sandlot/shared/events'
import type { UserSecrets } from '../secrets/user-secrets.ts'
import type { SessionManager } from '../session-manager.ts'
import type { ToolLog } from '../tools/tool.ts'
import type { ClientConnection } from './connection.ts'
import { toRequestError } from './errors.ts'

export interface AcpParts {
  manager: SessionManager
  /** Of a new session that does not say. */
  defaultMode: Mode
  /** The model's name, for people. */
  model: string
  /** What people have entrusted to the agent. Absent: nobody can. */
  secrets?: UserSecrets
  status(): Promise<AgentStatus>
  version: string
  log: ToolLog
}

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
