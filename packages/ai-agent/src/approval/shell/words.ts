/** Words of a command as far as they are known before it runs. */
import type { Word, WordPart } from 'unbash'

/** One word of the source; it may become none, one or several when it runs. */
export interface ArgWord {
  /** The word as written. */
  text: string
  /** The argument of the program, when that is certain. */
  literal: string | undefined
  /** The certain beginning of the word; equal to `literal` where that is known. */
  prefix: string
  /** It may become no word, or further words that begin with anything. */
  loose: boolean
  /** It may become more words than one: what is loose, and a pattern that several files fit. */
  several: boolean
}

/** Something that cannot be known; also what a program adds itself, as `xargs` does. */
export const ANYTHING: ArgWord = { text: '…', literal: undefined, prefix: '', loose: true, several: true }

export function argWord(word: Word): ArgWord {
  const { text } = word
  const parts = word.parts ?? []
  const loose = parts.some(isLoose)
  const several = loose || parts.some(({ type }) => type === 'Glob')
  // A tilde becomes a home directory; only an unquoted one at the beginning of a word.
  if (text.startsWith('~')) return { text, literal: undefined, prefix: '~', loose, several }
  if (word.parts === undefined) return knownWord(text, word.value)
  let known = ''
  for (const part of parts) {
    const value = literalOf(part)
    if (value === undefined)
      return { text, literal: undefined, prefix: known + knownBeginning(part), loose, several }
    known += value
  }
  return knownWord(text, known)
}

/** A word that becomes exactly this. `text`: as it is written. */
export function knownWord(text: string, literal = text): ArgWord {
  return { text, literal, prefix: literal, loose: false, several: false }
}

/**
 * The system's own program of that name; undefined for one of another folder, which may be
 * anything.
 */
export function systemName(literal: string | undefined): string | undefined {
  const name = literal?.replace(/^\/(usr\/)?bin\//, '')
  return name?.includes('/') === true ? undefined : name
}

/**
 * True unless it is certain that the word is no option: it may begin with a dash, or become more
 * words.
 */
export function mayBeOption(word: ArgWord): boolean {
  return word.loose || word.prefix === ''
    ? word.literal === undefined || word.loose
    : word.prefix.startsWith('-')
}

/** True if an unknown word may turn out to be this one. */
export function mayBecome({ literal, prefix }: ArgWord, text: string): boolean {
  return literal === undefined && text.startsWith(prefix)
}

function literalOf(part: WordPart): string | undefined {
  switch (part.type) {
    case 'Literal':
    case 'SingleQuoted':
    case 'AnsiCQuoted':
      return part.value
    case 'DoubleQuoted': {
      let value = ''
      for (const child of part.parts) {
        if (child.type !== 'Literal') return undefined
        value += child.value
      }
      return value
    }
    default:
      return undefined
  }
}

/** The text before the first expansion of a quoted string. */
function knownBeginning(part: WordPart): string {
  if (part.type === 'ProcessSubstitution') return '/dev/fd/'
  if (part.type !== 'DoubleQuoted') return ''
  let known = ''
  for (const child of part.parts) {
    if (child.type !== 'Literal') return known
    known += child.value
  }
  return known
}

function isLoose(part: WordPart): boolean {
  switch (part.type) {
    case 'SimpleExpansion':
    case 'ParameterExpansion':
    case 'CommandExpansion':
    case 'ArithmeticExpansion':
    case 'BraceExpansion':
    case 'Glob':
    case 'ExtendedGlob':
    case 'LocaleString':
      return part.type !== 'Glob'
    case 'DoubleQuoted':
      // "$@" and "${list[@]}" become as many words as there are.
      return part.parts.some(
        (child) =>
          (child.type === 'SimpleExpansion' && child.text.includes('@')) ||
          (child.type === 'ParameterExpansion' && child.text.includes('@')),
      )
    default:
      return false
  }
}
