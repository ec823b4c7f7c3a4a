/** Files of a workspace that an agent reads as instructions: AGENTS.md, or CLAUDE.md alone. */
import { z } from 'zod'

/** Reasons for a file without a text. Closed list. */
export const UNREADABLE_WORDS = {
  link_outside: 'it is a link that is absolute or leads out of the workspace',
  denied: 'it is a link to a file that a rule denies to the agent',
  not_file: 'it is not a regular file',
  not_text: 'it is not UTF-8 text',
  failed: 'reading it failed',
} as const
export type Unreadable = keyof typeof UNREADABLE_WORDS

/** One of them, as a prompt's model was given it. */
export const instructionFile = z.object({
  /** Relative to the workspace. */
  path: z.string(),
  /** Size of the file. Absent: it has never been read. */
  bytes: z.number().optional(),
  /** Bytes of its text that the model was given, if not all. */
  given: z.number().optional(),
  /** Epoch milliseconds of an earlier reading, which the text is of. Absent: it was read now. */
  readAt: z.number().optional(),
  unreadable: z
    .enum(Object.keys(UNREADABLE_WORDS) as [Unreadable, ...Unreadable[]])
    .optional()
    .catch('failed'),
})
export type InstructionFile = z.infer<typeof instructionFile>

/** Instructions without the times of files that could only not be read at the moment. */
export function withoutReadTimes(text: string): string {
  return text.replaceAll(/ \(as read at [\d:.TZ-]+\):$/gm, ':')
}
