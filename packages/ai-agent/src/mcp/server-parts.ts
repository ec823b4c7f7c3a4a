/** What a server is made of, what it offers, and who calls it. */
import { createHash } from 'node:crypto'
import type { Transport } from '@modelcontextprotocol/client'
import type { CallContext, ToolCall, ToolLog } from '../tools/tool.ts'
import type { Connecting } from './error.ts'
import type { ServerAccess } from './server-access.ts'
import type { ServerSpec } from './server-spec.ts'
import type { ToolDefinition } from './tool-definition.ts'

/** How this server is reached now; made anew for every connection. */
export interface Opened {
  transport: Transport
  /** Why it ended, when it did, in words. */
  ending: () => string | undefined
}

export interface ServerParts {
  spec: ServerSpec
  /** What it is given of secrets; when that changes it is started again. */
  settings: () => Promise<Readonly<Record<string, string>>>
  open: (settings: Readonly<Record<string, string>>, signal: AbortSignal) => Promise<Opened>
  /** Undefined: nothing of its own goes with a request beyond the settings. */
  access: ServerAccess | undefined
  log: ToolLog
}

/** What a server offers when a prompt begins. */
export type Offered =
  | { state: 'ready'; tools: readonly ToolDefinition[] }
  | { state: 'unavailable'; why: string }
  | { state: 'needs_auth'; connecting: Connecting }

export type ServerCall = CallContext & { call: ToolCall }

/** Tells settings apart without keeping them. */
export function digest(settings: Readonly<Record<string, string>>): string {
  const entries = Object.entries(settings).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return createHash('sha256').update(JSON.stringify(entries)).digest('hex')
}
