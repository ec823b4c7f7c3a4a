/** The words behind a program's name, read by the options that are known of it. */
import type { Options } from './options.ts'
import { type ArgWord, mayBeOption } from './words.ts'

export interface Arguments {
  /** Words that are no options; undefined: not known before it runs. */
  operands: readonly (string | undefined)[]
  /** True when one of these options is given, by letter or name. */
  has: (...names: string[]) => boolean
  /** What is given with these options; undefined: not known before it runs. */
  values: (...names: string[]) => readonly (string | undefined)[]
}

/**
 * Undefined where a word is an option that is not known, or may be one. An abbreviation is not
 * known: programs differ in what they take it for. A quoted variable and a pattern of files count
 * as no option where `trusts` says so.
 */
export function readArguments(
  { flags = '', valued = '', long = '', numbers }: Options,
  words: readonly ArgWord[],
  trusts = false,
): Arguments | undefined {
  const named = new Map(long.split(' ').map((name) => [name.replace(/=\??$/, ''), name] as const))
  const operands: (string | undefined)[] = []
  const given: [name: string, value: string | undefined][] = []
  for (let at = 0; at < words.length; at++) {
    const word = words[at]
    if (word === undefined) break
    const { literal } = word
    if (literal === '--') {
      operands.push(...words.slice(at + 1).map((rest) => rest.literal))
      break
    }
    if (literal === '-' || !mayBeOption(word) || (literal === undefined && trusts && isOneValue(word))) {
      operands.push(literal)
      continue
    }
    const dashes = /^--?/.exec(word.prefix)?.[0].length ?? 0
    const [name = '', ...rest] = word.prefix.slice(dashes).split('=')
    if (dashes === 2) {
      const form = named.get(name)
      if (form === undefined || (literal === undefined && rest.length === 0)) return undefined
      if (rest.length > 0 && form.endsWith(name)) return undefined
      const isNext = rest.length === 0 && form.endsWith('=')
      if (isNext && words[at + 1]?.several !== false) return undefined
      given.push([name, isNext ? words[++at]?.literal : literal?.slice(name.length + 3)])
      continue
    }
    if (literal === undefined) return undefined
    if (numbers === true && /^-\d+$/.test(literal)) continue
    const letters = literal.slice(1)
    const valueAt = Array.from(letters).findIndex((letter) => valued.includes(letter))
    const bare = Array.from(valueAt < 0 ? letters : letters.slice(0, valueAt))
    if (bare.some((letter) => !flags.includes(letter))) return undefined
    given.push(...bare.map((letter): [string, undefined] => [letter, undefined]))
    if (valueAt < 0) continue
    const isNext = valueAt === letters.length - 1
    if (isNext && words[at + 1]?.several !== false) return undefined
    given.push([letters[valueAt] ?? '', isNext ? words[++at]?.literal : letters.slice(valueAt + 1)])
  }
  return {
    operands,
    has: (...names) => given.some(([name]) => names.includes(name)),
    values: (...names) => given.flatMap(([name, value]) => (names.includes(name) ? [value] : [])),
  }
}

function isOneValue({ loose, prefix }: ArgWord): boolean {
  return !loose && !prefix.startsWith('-')
}
