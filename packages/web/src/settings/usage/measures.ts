/** Measures of sums of answers and of calls. */
import { formatBytes } from '@sandlot/shared/base/format-bytes'
import type { CountedTool, CountedUsage } from '@sandlot/shared/admin/usage'
import { formatDuration } from '../../lib/format.ts'
import { costWords, dollarWords, shareWords, tokenWords } from '../../lib/usage-text.ts'

const whole = (value: number): string => value.toLocaleString('en')

type Measures<Row> = readonly [Measure<Row>, ...Measure<Row>[]]

export const USAGE_MEASURES: Measures<CountedUsage> = [
  { id: 'cost', name: 'Cost', of: ({ cost }) => cost, words: dollarWords, cell: costWords },
  count('input', 'Tokens in', tokenWords),
  count('output', 'Tokens out', tokenWords),
  count('cached', 'Cached input', tokenWords),
  {
    id: 'cachedShare',
    name: 'Cached share',
    of: ({ cachedShare }) => cachedShare,
    words: shareWords,
    cell: ({ cachedShare }) => (cachedShare === null ? 'unknown' : shareWords(cachedShare)),
  },
  count('reasoning', 'Reasoning output', tokenWords),
  count('answers', 'Answers', whole),
  count('calls', 'Calls', whole),
]

export const TOOL_MEASURES: Measures<CountedTool> = [
  callCount('calls', 'Calls', whole),
  callCount('failed', 'Failed', whole),
  callCount('runMs', 'Run time', formatDuration),
  callCount('waitMs', 'Time waiting', formatDuration),
  callCount('outputBytes', 'Output', formatBytes),
]

function count(
  id: Exclude<keyof CountedUsage, 'cost' | 'cachedShare'>,
  name: string,
  words: (value: number) => string,
): Measure<CountedUsage> {
  return { id, name, of: (row) => row[id], words, cell: (row) => words(row[id]) }
}

function callCount(
  id: keyof CountedTool,
  name: string,
  words: (value: number) => string,
): Measure<CountedTool> {
  return { id, name, of: (row) => row[id], words, cell: (row) => words(row[id]) }
}

/** One thing that can be seen by day. */
export interface Measure<Row> {
  id: string
  /** `Cost (US dollars)`. */
  name: string
  /** Null: not known. */
  of: (row: Row) => number | null
  /** On the axis. */
  words: (value: number) => string
  /** In the table. */
  cell: (row: Row) => string
}
