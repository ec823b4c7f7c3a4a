/** Files that changed while a prompt ran. */
import { z } from 'zod'

const fileChange = z.object({
  /** Relative to the workspace. */
  path: z.string(),
  kind: z.enum(['created', 'changed', 'removed']),
  /** Bytes; of a removed file its last size. */
  size: z.number().int().nonnegative(),
  /** Added and removed lines. Absent if the text before or after is not known. */
  lines: z.object({ added: z.int().nonnegative(), removed: z.int().nonnegative() }).optional(),
  /** Its diff is stored with the prompt (`promptDiffs`). */
  diff: z.literal(true).optional(),
})
export type FileChange = z.infer<typeof fileChange>

export const filesChanged = z.object({
  /** Nearest to the top of the workspace first. */
  files: z.array(fileChange),
  /** The number of further files. */
  more: z.int().nonnegative(),
  /** The reason for an empty list: the workspace has too many files to compare. */
  problem: z.literal('too_many_files').optional(),
})
export type FilesChanged = z.infer<typeof filesChanged>

/** The stored diffs of one prompt, for the chat's owner. `oldText` null: the file is new. */
export const promptDiffs = z.object({
  diffs: z.array(z.object({ path: z.string(), oldText: z.string().nullable(), newText: z.string() })),
})
export type PromptDiffs = z.infer<typeof promptDiffs>

const STORED = 'changes:'

/** The id of a prompt's diffs among the session's stored outputs, as JSON. */
export function diffsId(promptId: string): string {
  return `${STORED}${promptId}`
}

/** True for stored diffs, which only the chat's owner may read. */
export function isDiffsId(outputId: string): boolean {
  return outputId.startsWith(STORED)
}
