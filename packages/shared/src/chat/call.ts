/** A tool call and its results: kind and status, output, and the outcome for model and screen. */
import { z } from 'zod'
import { messageImage } from './images.ts'

export const toolKind = z.enum([
  'read',
  'edit',
  'delete',
  'move',
  'search',
  'execute',
  'think',
  'fetch',
  'switch_mode',
  'other',
])
export type ToolKind = z.infer<typeof toolKind>

export const callStatus = z.enum(['pending', 'in_progress', 'completed', 'failed'])
export type CallStatus = z.infer<typeof callStatus>

export const exitInfo = z.union([z.object({ code: z.number().int() }), z.object({ signal: z.string() })])
export type ExitInfo = z.infer<typeof exitInfo>

/** A piece of a call's live output. Offsets are raw bytes of the output; `data` is their text. */
export const outputPiece = z.object({
  offset: z.number().int().nonnegative(),
  end: z.number().int().nonnegative(),
  data: z.string(),
})
export type OutputPiece = z.infer<typeof outputPiece>

/** A call's complete output, on its settled outcome. */
export const outputInfo = z.object({
  bytes: z.number().int().nonnegative(),
  lines: z.number().int().nonnegative(),
  /** The text in the event (and in the model's message) is not complete. */
  truncated: z.boolean(),
  /** Path in the sandbox of a copy that the ordinary tools can read. */
  file: z.string().optional(),
  /** Path on the service of the full output: `/api/sessions/:session/outputs/:call`. */
  url: z.string(),
  /**
   * Bytes from here on were counted and not stored, because of the limit of one output, the user's
   * budget, or the disk.
   */
  unstored: z
    .object({ from: z.number().int().nonnegative(), why: z.enum(['limit', 'budget', 'disk']) })
    .optional(),
})
export type OutputInfo = z.infer<typeof outputInfo>

export const contentBlock = z.discriminatedUnion('type', [
  z.object({ type: z.literal('text'), text: z.string() }),
  z.object({
    type: z.literal('resource_link'),
    uri: z.string(),
    name: z.string(),
    mimeType: z.string().optional(),
    size: z.number().optional(),
  }),
  messageImage.extend({ type: z.literal('image') }),
])
export type ContentBlock = z.infer<typeof contentBlock>

export const toolCallContent = z.discriminatedUnion('type', [
  z.object({ type: z.literal('content'), content: contentBlock }),
  z.object({ type: z.literal('diff'), path: z.string(), oldText: z.string().nullish(), newText: z.string() }),
])
export type ToolCallContent = z.infer<typeof toolCallContent>

export const toolLocation = z.object({ path: z.string(), line: z.number().optional() })
export type ToolLocation = z.infer<typeof toolLocation>

/** An outcome for the model and the screen. `forModel` is the text of the model's tool message. */
export const rawOutput = z.object({ forModel: z.string(), data: z.unknown().optional() })
export type RawOutput = z.infer<typeof rawOutput>
