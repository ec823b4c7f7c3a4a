/**
 * The end of the previous process, from a small file in `$SANDLOT_DATA/run`. A prompt that did not
 * cause that end is resumed without counting towards being given up.
 */
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { z } from 'zod'
import { parseJson } from '@sandlot/shared/base/json'
import { lastEndFile, type LastEnd } from './last-end-file.ts'

const runningStep = z.object({ sessionId: z.string(), promptId: z.string() })
const lastEnd = z.discriminatedUnion('how', [
  z.object({ how: z.literal('left') }),
  z.object({ how: z.literal('blocked'), step: runningStep.optional() }),
]) satisfies z.ZodType<LastEnd>

/**
 * Read it once: it is about the end before this start, not about the next one. Undefined: the
 * process could not say.
 */
export function takeLastEnd(dataFolder: string): LastEnd | undefined {
  const file = lastEndFile(dataFolder)
  if (!existsSync(file)) return undefined
  const text = readFileSync(file, 'utf8')
  rmSync(file)
  return parse(text)
}

/** True if resuming this prompt counts: any may have ended a process that left no record. */
export function countsResume(end: LastEnd | undefined, promptId: string): boolean {
  return end === undefined || isToBlame(end, promptId)
}

/** True if a step of this prompt certainly blocked that process. */
export function isToBlame(end: LastEnd | undefined, promptId: string): boolean {
  return end?.how === 'blocked' && end.step?.promptId === promptId
}

/** A full disk leaves an empty or a cut file: it says nothing. */
function parse(text: string): LastEnd | undefined {
  return lastEnd.safeParse(parseJson(text)).data
}
