/** The texts of instructions: each person's, team's or project's, and all together for a model. */
import { z } from 'zod'
import { storableText } from './storable-text.ts'

/** Bytes of UTF-8. */
export const MAX_INSTRUCTION_BYTES = 8 * 1024

export const instructionText = z
  .string()
  .refine(
    (text) => new TextEncoder().encode(text).length <= MAX_INSTRUCTION_BYTES,
    `must have at most ${MAX_INSTRUCTION_BYTES} bytes`,
  )

/** Tag of a note to a model about changed instructions. */
export const CHANGED_TAG = 'instructions_changed'

const TAG = new RegExp(`<(?=[\\s/]*${CHANGED_TAG})`, 'gi')

/** Text in which nothing reads as the beginning or the end of a note about changed instructions. */
export function withoutChangedTags(text: string): string {
  return text.replaceAll(TAG, '&lt;')
}

const LINE_END = /\r\n?|[\u2028\u2029]/g

/** A line that reads as the heading of a section. */
const HEADING = /(?<![^\n])[^\S\n]*From\b[^\n]*:[^\S\n]*(?![^\n])/gi

/**
 * The sections that have a text, as one text: each title, `From …`, on a line of its own. In their
 * texts such lines are quoted, so that no section speaks for another.
 */
export function joinInstructions(sections: readonly (readonly [title: string, text: string])[]): string {
  const all = sections
    .map(([title, text]) => [title, storableText(text).replaceAll(LINE_END, '\n').trim()] as const)
    .filter(([, text]) => text !== '')
    .map(([title, text]) => `${title.replaceAll(/\s+/g, ' ')}:\n\n${text.replaceAll(HEADING, '> $&')}`)
  return withoutChangedTags(all.join('\n\n'))
}
