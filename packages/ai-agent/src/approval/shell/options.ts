/** The words behind a program's name, read by the options that are known of it. */
import { type ArgWord, knownWord, mayBeOption } from './words.ts'

/**
 * `-ab` are letters, `-o=` letters with a value, `-<n>` any number; all others are names of long
 * options: `name`, `name=` with a value, `name=?` where it may be left out. `<1>`: one word at most
 * is no option. Abbreviations are not known: programs differ in what they take them for.
 */
export type Options = string

export const SORT =
  '-bdfgiMhnRrVcCmsuz -kt= reverse numeric-sort unique key= field-separator= ignore-case version-sort human-numeric-sort general-numeric-sort stable check=? merge zero-terminated ignore-leading-blanks dictionary-order month-sort'
/** The second operand of these is a file to write. */
export const UNIQ =
  '-cdDiuz -fsw= count repeated all-repeated=? unique ignore-case skip-fields= skip-chars= check-chars= zero-terminated group=?'
export const XXD = '-abeEiupCr -cglos='

/** It reads two characters of an option without a value: `-ps` is `-p`. */
export function asXxd(words: readonly ArgWord[]): readonly ArgWord[] {
  return words.map((word) =>
    /^-[abeEiupCr]./.test(word.literal ?? '') ? knownWord(word.prefix.slice(0, 2)) : word,
  )
}

interface Known {
  flags: string
  valued: string
  numbers: boolean
  most: number
  /** With what stands behind each name. */
  long: ReadonlyMap<string, string>
}

const KNOWN = new Map<Options, Known>()

export function knownOf(options: Options): Known {
  const before = KNOWN.get(options)
  if (before !== undefined) return before
  const words = options.split(/\s+/)
  const letters = (form: RegExp): string => words.flatMap((word) => form.exec(word)?.[1] ?? []).join('')
  const known = {
    flags: letters(/^-([^<][^=]*)$/),
    valued: letters(/^-(.+)=$/),
    numbers: words.includes('-<n>'),
    most: Number(words.flatMap((word) => /^<(\d)>$/.exec(word)?.[1] ?? []).at(0) ?? Infinity),
    long: new Map(
      words.flatMap((word) => {
        const [, name, value = ''] = /^([^-=<][^=]*)(=\??)?$/.exec(word) ?? []
        return name === undefined ? [] : [[name, value] as const]
      }),
    ),
  }
  KNOWN.set(options, known)
  return known
}

export interface Arguments {
  /** Words that are no options. */
  others: readonly ArgWord[]
  /**
   * The operands; undefined: not known before it runs, and twice for a word that may become
   * several.
   */
  operands: readonly (string | undefined)[]
  /** True when one of these options is given, by letter or name. */
  has: (...names: string[]) => boolean
  /** Values of these options; undefined: not known before it runs. */
  values: (...names: string[]) => readonly (string | undefined)[]
}

interface Reading {
  /** A quoted variable and a pattern of files count as no option. */
  trusts?: boolean
  /**
   * If a value is missing, it takes the next word for an option: the stand-in of a value must not
   * look like one.
   */
  peeks?: boolean
}

/** Undefined where a word is an option that is not known, or may be one. */
export function readArguments(
  options: Options,
  words: readonly ArgWord[],
  { trusts = false, peeks = false }: Reading = {},
): Arguments | undefined {
  const { flags, valued, numbers, long } = knownOf(options)
  const others: ArgWord[] = []
  const given: [name: string, value: string | undefined][] = []
  for (let at = 0; at < words.length; at++) {
    const word = words[at]
    if (word === undefined) break
    const { literal, prefix } = word
    if (literal === '--') {
      others.push(...words.slice(at + 1))
      break
    }
    if (literal === '-' || !mayBeOption(word) || (trusts && !word.loose && !prefix.startsWith('-'))) {
      others.push(word)
      continue
    }
    if (word.several) return undefined
    if (numbers && /^-\d+$/.test(prefix)) continue
    let [, name = '', equals] = /^--([^=]+)(=)?/.exec(prefix) ?? []
    let value = literal?.slice(name.length + 3)
    let isNext = false
    if (name !== '') {
      const takes = long.get(name)
      if (takes === undefined || (equals === undefined ? literal === undefined : takes === ''))
        return undefined
      isNext = equals === undefined && takes === '='
    } else {
      const letters = Array.from(prefix.slice(1))
      const valueAt = letters.findIndex((letter) => valued.includes(letter))
      const bare = valueAt < 0 ? letters : letters.slice(0, valueAt)
      // If `-k"$x"` is `-k` alone, it takes the next word for its value.
      if (literal === undefined && (!trusts || valueAt < 0)) return undefined
      if (bare.some((letter) => !flags.includes(letter))) return undefined
      given.push(...bare.map((letter): [string, undefined] => [letter, undefined]))
      if (valueAt < 0) continue
      name = letters[valueAt] ?? ''
      isNext = literal !== undefined && valueAt === letters.length - 1
      value = literal?.slice(valueAt + 2)
    }
    if (isNext) {
      const next = words[++at]
      if (next === undefined || next.several) return undefined
      if (peeks && mayBeOption(next) && !/^-\d+$/.test(next.literal ?? '')) return undefined
      value = next.literal
    }
    given.push([name, value])
  }
  return {
    others,
    operands: others.flatMap(({ literal, several }) => (several ? [undefined, undefined] : [literal])),
    has: (...names) => given.some(([name]) => names.includes(name)),
    values: (...names) => given.flatMap(([name, value]) => (names.includes(name) ? [value] : [])),
  }
}

/** True when every word is an option that is known, its value, or no option. */
export function usesOnly(options: Options, words: readonly ArgWord[], reading: Reading = {}): boolean {
  const given = readArguments(options, words, reading)
  return given !== undefined && given.operands.length <= knownOf(options).most
}
