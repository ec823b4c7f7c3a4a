/** The options of a program that only reads, as data, and whether given words keep to them. */
import { type ArgWord, mayBeOption } from './words.ts'

export interface Options {
  /** Letters of options without a value. */
  flags?: string
  /** Letters of options with one. */
  valued?: string
  /** Names of long options, without dashes; `name=` has a value, `name=?` may have one. */
  long?: string
  /** `-5`. */
  numbers?: true
  /** Words that are no options: how many at most. */
  most?: number
  /** How each of them begins. */
  others?: RegExp
  /**
   * Where a value is missing it takes the next word for an option: what stands in for a value must
   * not look like one.
   */
  peeks?: true
}

/** Of `sort`, without what writes. */
export const SORT = {
  flags: 'bdfgiMhnRrVcCmsuz',
  valued: 'kt',
  long: 'reverse numeric-sort unique key= field-separator= ignore-case version-sort human-numeric-sort general-numeric-sort stable check=? merge zero-terminated ignore-leading-blanks dictionary-order month-sort',
} satisfies Options

/** Of `uniq`; its second operand is a file to write. */
export const UNIQ = {
  flags: 'cdDiuz',
  valued: 'fsw',
  long: 'count repeated all-repeated=? unique ignore-case skip-fields= skip-chars= check-chars= zero-terminated group=?',
  most: 1,
} satisfies Options

/**
 * True when every word behind the name is an option of the list, its value, or no option.
 * Abbreviations are not on the list.
 */
export function usesOnly(options: Options, words: readonly ArgWord[]): boolean {
  const long = new Map(
    (options.long ?? '').split(' ').map((name) => {
      const [bare = '', value] = name.split('=')
      return [bare, value === undefined ? 'none' : value === '?' ? 'maybe' : 'needed'] as const
    }),
  )
  let others = 0
  let ended = false
  for (let at = 0; at < words.length; at++) {
    const word = words[at]
    if (word === undefined) break
    if (!ended && word.literal === '--') {
      ended = true
      continue
    }
    if (ended || !mayBeOption(word) || word.literal === '-') {
      others += word.several ? Number.POSITIVE_INFINITY : 1
      if (options.others?.test(word.prefix) === false) return false
      continue
    }
    const text = word.literal
    if (text === undefined) return false
    if (text.startsWith('--')) {
      const equals = text.indexOf('=')
      const kind = long.get(equals < 0 ? text.slice(2) : text.slice(2, equals))
      if (kind === undefined || (kind === 'none' && equals >= 0)) return false
      if (kind === 'needed' && equals < 0 && !isValue(words[++at], options)) return false
      continue
    }
    if (options.numbers === true && /^-\d+$/.test(text)) continue
    const letters = Array.from(text.slice(1))
    const valueAt = letters.findIndex((letter) => options.valued?.includes(letter) === true)
    const flags = valueAt < 0 ? letters : letters.slice(0, valueAt)
    if (flags.some((letter) => options.flags?.includes(letter) !== true)) return false
    if (valueAt === letters.length - 1 && valueAt >= 0 && !isValue(words[++at], options)) return false
  }
  return options.most === undefined || others <= options.most
}

function isValue(word: ArgWord | undefined, { peeks }: Options): boolean {
  if (word === undefined || word.several) return false
  return peeks !== true || !mayBeOption(word) || /^-\d+$/.test(word.literal ?? '')
}
