/** Programs by the options that are known of them; any other option may lose anything. */
import { type Arguments, readArguments } from './options.ts'
import { type Loss, UNKNOWN, each, lost, written } from './loss.ts'
import type { ArgWord } from './words.ts'

/** `says`: the words of the row behind its name. `place`: where it runs. */
export type Loses = (given: Arguments, says: readonly string[], place: string) => readonly Loss[]

interface Row {
  options: string
  loses: Loses
  says: readonly string[]
  /** With one of these options nothing is lost. */
  unless: readonly string[]
}

/** Losses common to several programs. */
const LOSES: Readonly<Record<string, Loses>> = {
  nothing: () => [],
  unknown: () => UNKNOWN,
  deletes: ({ operands }) => each('deletes', operands),
  overwrites: ({ operands }) => each('overwrites', operands),
  /** The values of these options. */
  writes: ({ values }, says) => written(values(...says)),
  /** Nothing, if its first operand is one of these. */
  verbs: ({ operands: [verb] }, says) => (verb === undefined || !says.includes(verb) ? UNKNOWN : []),
  discards: (_given, _says, place) => lost('discards', place),
  resets: (_given, _says, place) => lost('resets', place),
}

/** A program for each row: `names: options | what they lose, more words unless options`. */
export function lossesTable(
  text: string,
  own: Readonly<Record<string, Loses>>,
): { has: (name: string) => boolean; names: readonly string[]; losses: LossesByTable } {
  const rows = new Map<string, Row>()
  for (const line of text.trim().split('\n')) {
    const [names = '', options = '', does = ''] = line.split(/:(?= )| \| /)
    const [says = '', unless = ''] = does.split(' unless ')
    const [name = '', ...more] = says.split(' ')
    const loses = own[name] ?? LOSES[name]
    if (loses === undefined) throw new Error(`No program loses by “${name}”.`)
    for (const program of names.split(' '))
      rows.set(program, { options: options.trim(), loses, says: more, unless: unless.split(' ') })
  }
  return {
    names: [...rows.keys()],
    has: (name) => rows.has(name),
    losses: (name, words, place = '.') => {
      const row = rows.get(name)
      const given = row && readArguments(row.options, words, { trusts: true })
      if (row === undefined || given === undefined) return UNKNOWN
      return given.has(...row.unless) ? [] : row.loses(given, row.says, place)
    },
  }
}

type LossesByTable = (name: string, words: readonly ArgWord[], place?: string) => readonly Loss[]
