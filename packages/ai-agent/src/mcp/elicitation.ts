/** A server that asks the user for something in the middle of a call. Whoever can ask a person puts a function here. */
import type { CallContext, ToolCall } from '../tools/tool.ts'

export interface Elicitation {
  server: string
  /** The call in which it asks. */
  call: CallContext & { call: ToolCall }
  /** What the server wants to know, in its words. */
  message: string
  /** A flat JSON Schema of the answer: texts, numbers, choices. */
  schema: Record<string, unknown>
  signal: AbortSignal
}

export type ElicitationAnswer =
  | { action: 'accept'; content: Record<string, string | number | boolean | string[]> }
  | { action: 'decline' | 'cancel' }

export type Elicit = (asked: Elicitation) => Promise<ElicitationAnswer>
