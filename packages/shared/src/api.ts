/** Bodies of the HTTP API that more than one package reads. */
import { z } from 'zod'
import { failureReason, mode, stopReason, tokenUsage } from './events.ts'
import { requestId, sessionId } from './ids.ts'
import { MAX_MESSAGE_CHARS } from './frames.ts'

/** `POST /api/chat` */
export const chatRequest = z.strictObject({
  message: z.string().min(1).max(MAX_MESSAGE_CHARS),
  /** Chosen by the caller; created for that user where it does not exist. */
  sessionId: sessionId.optional(),
  /** Default of an API key: `yolo`. */
  mode: mode.optional(),
  requestId: requestId.optional(),
})
export type ChatRequest = z.infer<typeof chatRequest>

export const toolResult = z.object({
  callId: z.string(),
  name: z.string(),
  status: z.enum(['completed', 'failed']),
  reason: failureReason.optional(),
  text: z.string(),
  outputUrl: z.string().optional(),
  truncated: z.boolean(),
})
export type ToolResult = z.infer<typeof toolResult>

export const chatResponse = z.object({
  sessionId,
  text: z.string(),
  stopReason,
  toolResults: z.array(toolResult),
  usage: tokenUsage,
})
export type ChatResponse = z.infer<typeof chatResponse>

/** `GET /readyz`, and the agent's own status. Degraded is not dead: without an engine chat still works and says so. */
export const readiness = z.object({
  ready: z.boolean(),
  reasons: z.array(z.object({ part: z.string(), ok: z.boolean(), message: z.string() })),
})
export type Readiness = z.infer<typeof readiness>

/** `GET /api/me` */
export const me = z.object({
  id: z.string(),
  name: z.string(),
  email: z.string(),
  role: z.enum(['admin', 'user']),
  /** The model's name for people, and whether it is the demo model. */
  model: z.object({ name: z.string(), demo: z.boolean() }),
  defaultMode: mode,
})
export type Me = z.infer<typeof me>
