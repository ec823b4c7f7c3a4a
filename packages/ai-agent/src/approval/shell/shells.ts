/** Shells that are started with something to run. */
import { type ScriptReader, type Wrapped, nothing } from './wrapped.ts'
import type { ArgWord } from './words.ts'

/** What `-o` and `-O` may set: nothing that has a line read otherwise, or changed before it is read. */
const SETTABLE = new Set(
  'errexit nounset xtrace verbose pipefail noclobber noglob nullglob failglob globstar dotglob nocaseglob extglob inherit_errexit'.split(
    ' ',
  ),
)

/**
 * `bash [flags] -c script args`, `bash <<< script`. A file that a shell runs is a program like any other. `input`: what the
 * shell gets to read.
 */
export function shell(
  rest: readonly ArgWord[],
  input: readonly (string | undefined)[],
  readBy: ScriptReader,
): Wrapped {
  return { ...started(rest, input), readBy }
}

function started(rest: readonly ArgWord[], input: readonly (string | undefined)[]): Wrapped {
  for (let at = 0; at < rest.length; at++) {
    const word = rest[at]
    if (word?.literal === undefined)
      return { ...nothing('acts'), problems: ['starts a shell with words that are not known'] }
    const text = word.literal
    if (text === '--version' || text === '--help') return nothing('proven')
    if (text === '--norc' || text === '--noprofile' || text === '--posix' || /^[-+][euxv]+$/.test(text))
      continue
    if (/^[-+][euxv]*[oO]$/.test(text)) {
      const option = rest[++at]?.literal
      if (option === undefined || !SETTABLE.has(option))
        return { ...nothing('acts'), problems: [`starts a shell with ${text} ${option ?? ''}`.trimEnd()] }
      continue
    }
    if (/^-[euxv]*c[euxv]*$/.test(text)) {
      const script = rest[at + 1]
      if (script?.literal === undefined)
        return { ...nothing('acts'), problems: ['has a shell run what is not known before it runs'] }
      // Also `bash -c -- script`, which is rare enough to ask.
      if (script.literal.startsWith('-'))
        return { ...nothing('acts'), problems: ['gives a shell options behind -c'] }
      return { ...nothing('carries'), scripts: [script.literal] }
    }
    if (text === '-s' || text === '-') return reads(input)
    if (text.startsWith('-') || text.startsWith('+'))
      return { ...nothing('acts'), problems: [`starts a shell with the option ${text}`] }
    // A file is a program like any other, unless it is what the shell would read anyway.
    return /^\/(dev\/stdin|(dev|proc\/self)\/fd\/0)$/.test(text) ? reads(input) : nothing('acts')
  }
  return reads(input)
}

function reads(input: readonly (string | undefined)[]): Wrapped {
  const [only] = input
  if (input.length !== 1 || only === undefined)
    return { ...nothing('acts'), problems: ['has a shell run what it reads'] }
  return { ...nothing('carries'), scripts: [only] }
}

export function trap(rest: readonly ArgWord[]): Wrapped {
  const [action] = rest
  if (rest.length === 0) return nothing('proven')
  if (action?.literal === undefined || action.literal.startsWith('-'))
    return { ...nothing('acts'), problems: ['sets a trap that is not known before it runs'] }
  return { ...nothing('carries'), scripts: action.literal === '' ? [] : [action.literal] }
}
