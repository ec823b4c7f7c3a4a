/** The parts that a server is made of, and the offer that it makes. */
import type { RequiredSignIn } from './error.ts'
import type { ServerAccess } from './server-access.ts'
import type { ServerSpec } from './server-spec.ts'
import type { SlowServers } from './slow-servers.ts'
import type { ToolTransport } from './transports/raw-results.ts'
import type { ToolDefinition } from './tool-definition.ts'
import type { Log } from '../log.ts'

/** The transport of one connection. */
export interface Opened {
  transport: ToolTransport
  /** Why it ended, if it did. */
  ending: () => string | undefined
}

export interface ServerParts {
  spec: ServerSpec
  /** The secrets it gets; it is restarted when they change. */
  settings: () => Promise<Readonly<Record<string, string>>>
  open: (settings: Readonly<Record<string, string>>, signal: AbortSignal) => Promise<Opened>
  /** Undefined: requests carry nothing beyond the settings. */
  access: ServerAccess | undefined
  slowServers: SlowServers
  log: Log
}

/** A server's tools when a prompt begins. */
export type Offered =
  | { state: 'ready'; tools: readonly ToolDefinition[] }
  | { state: 'unavailable'; why: string }
  | { state: 'needs_auth'; signIn: RequiredSignIn }
