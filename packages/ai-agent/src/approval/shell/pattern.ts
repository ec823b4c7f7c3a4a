/** The pattern of a rule about commands, and how it compares with the words of one. */
import { parse } from 'unbash'
import { escapes } from './escapes.ts'
import { type ArgWord, argWord } from './words.ts'

/** Any words, also none. */
const WILD = Symbol('*')
/** Each word of a pattern costs one pass over the command's words. */
const MAX_WORDS = 200
/** More say nothing that a reader could check. */
const MAX_WILDCARDS = 16
type PatternWord = string | typeof WILD

const read = new Map<string, readonly PatternWord[] | { problem: string }>()
const KEPT = 500

/** Why `text` cannot stand in a rule; undefined when it can. */
export function patternProblem(text: string): string | undefined {
  const words = readPattern(text)
  return 'problem' in words ? words.problem : undefined
}

function readPattern(text: string): readonly PatternWord[] | { problem: string } {
  const known = read.get(text)
  if (known !== undefined) return known
  if (read.size >= KEPT) read.clear()
  const made = parsePattern(text)
  read.set(text, made)
  return made
}

function parsePattern(text: string): readonly PatternWord[] | { problem: string } {
  const { commands, errors = [] } = parse(text)
  const command = commands[0]?.command
  if (
    errors.length > 0 ||
    commands.length !== 1 ||
    command?.type !== 'Command' ||
    commands[0]?.background === true
  )
    return { problem: 'must be one simple command, like npm test * (without ; | & and redirections)' }
  if (command.name === undefined || command.prefix.length > 0 || command.redirects.length > 0)
    return { problem: 'must be one simple command, without assignments and redirections' }
  const words: PatternWord[] = []
  for (const word of [command.name, ...command.args]) {
    const known = word.type === 'Word' ? argWord(word).literal : word.text
    if (known === undefined && word.text !== '*')
      return { problem: `${word.text} is not a plain word; quote it, or use * alone for any further words` }
    words.push(known ?? WILD)
  }
  if (words.length > MAX_WORDS) return { problem: `has ${words.length} words; ${MAX_WORDS} may be in it` }
  const wildcards = words.filter((word) => word === WILD).length
  if (wildcards > MAX_WILDCARDS) return { problem: `has ${wildcards} *; ${MAX_WILDCARDS} may be in it` }
  return words
}

/** A word as it is written in a pattern. */
export function quoteWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) && word !== '' ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`
}

/**
 * Whether a rule that allows covers this command: certainly, or not. A `*` does not cover options by which the program
 * would run another one.
 */
export function certainlyMatches(pattern: string, words: readonly ArgWord[]): boolean {
  const wanted = readPattern(pattern)
  if ('problem' in wanted || !compare(wanted, words, false)) return false
  if (!wanted.includes(WILD)) return true
  const named = new Set<PatternWord>(wanted)
  return !escapes(words, words[0]?.literal ?? '', named)
}

/** Whether a rule that denies or asks is meant by this command: certainly, perhaps, or not. The folder of the program's name does not count. */
export function meantBy(pattern: string, words: readonly ArgWord[]): 'yes' | 'maybe' | 'no' {
  const wanted = readPattern(pattern)
  if ('problem' in wanted) return 'maybe'
  const [head, ...rest] = words
  if (head === undefined) return 'no'
  const base = head.literal?.split('/').at(-1)
  const bare = base === undefined ? words : [{ ...head, literal: base, prefix: base }, ...rest]
  for (const candidate of [words, bare]) if (compare(wanted, candidate, false)) return 'yes'
  if (compare(wanted, words, true) || compare(wanted, bare, true)) return 'maybe'
  return behindOptions(wanted, bare) ? 'maybe' : 'no'
}

/** `git -C x push` is meant by `git push *`: options stand between the name and what it does. */
function behindOptions(pattern: readonly PatternWord[], words: readonly ArgWord[]): boolean {
  const [name, ...literals] = pattern.filter((word) => word !== WILD)
  const [head, option, ...rest] = words
  if (literals.length === 0 || head?.literal !== name || option?.prefix.startsWith('-') !== true) return false
  let at = 0
  for (const word of rest)
    if (word.literal === literals[at] || (word.literal === undefined && word.loose)) at++
  return at >= literals.length
}

/** `perhaps`: a word that is not known may be whatever the pattern has. */
function compare(pattern: readonly PatternWord[], words: readonly ArgWord[], perhaps: boolean): boolean {
  // Row by row: which beginnings of the words the pattern so far can stand for.
  let reached = new Uint8Array(words.length + 1)
  reached[0] = 1
  const skipLoose = (row: Uint8Array): void => {
    // In doubt a word that may vanish does.
    if (perhaps) for (const [at, word] of words.entries()) if (word.loose && row[at] === 1) row[at + 1] = 1
  }
  skipLoose(reached)
  for (const wanted of pattern) {
    const next = new Uint8Array(words.length + 1)
    for (let at = reached.indexOf(1); at !== -1; at = reached.indexOf(1, at + 1)) {
      if (wanted === WILD) {
        next.fill(1, at)
        break
      }
      const word = words[at]
      if (word === undefined) continue
      if (word.literal === wanted) next[at + 1] = 1
      if (!perhaps || word.literal !== undefined) continue
      // One that may become several may go on being the next ones.
      if (word.loose) next[at] = 1
      if (word.loose || wanted.startsWith(word.prefix)) next[at + 1] = 1
    }
    skipLoose(next)
    reached = next
  }
  return reached[words.length] === 1
}
