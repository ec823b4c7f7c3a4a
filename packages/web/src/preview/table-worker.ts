/** Holds the rows of one table away from the page; answers what the window shows. */
import { messageOf } from '@sandlot/shared/base/errors'
import { decodeFile } from './decode-file.ts'
import { type Arrangement, arrange, parseTable, type Table } from './table.ts'

export type TableAsk =
  | { do: 'open'; url: string; size: number; tabs: boolean }
  | ({ do: 'arrange'; turn: number } & Arrangement)
  | { do: 'rows'; turn: number; from: number; to: number }

export type TableAnswer =
  | {
      is: 'opened'
      columns: string[]
      numeric: boolean[]
      widths: number[]
      rows: number
      cut: boolean
      notes: string[]
    }
  | { is: 'no table' }
  | { is: 'failed'; why: string }
  /** `rows`: how many are left by the filter. */
  | { is: 'arranged'; turn: number; rows: number }
  | { is: 'rows'; turn: number; from: number; rows: { no: number; cells: string[] }[] }

/** The largest file that is read. */
const MOST_BYTES = 64 * 1024 * 1024
/** Rows that are measured for the width of a column. */
const SAMPLE = 200

let table: Table | undefined
let order = new Uint32Array()
let latest = 0

const answer = (message: TableAnswer): void => postMessage(message)

addEventListener('message', ({ data }: MessageEvent<TableAsk>) => {
  if (data.do === 'open') void open(data)
  else if (table === undefined) return
  else if (data.do === 'arrange') {
    order = new Uint32Array(arrange(table, data))
    latest = data.turn
    answer({ is: 'arranged', turn: data.turn, rows: order.length })
  } else if (data.turn === latest) {
    const { rows } = table
    const shown = Array.from(order.subarray(data.from, data.to), (at) => ({
      no: at + 1,
      cells: rows[at] ?? [],
    }))
    answer({ is: 'rows', turn: data.turn, from: data.from, rows: shown })
  }
})

async function open({ url, size, tabs }: Extract<TableAsk, { do: 'open' }>): Promise<void> {
  try {
    const whole = size <= MOST_BYTES
    const response = await fetch(url, { headers: { range: `bytes=0-${Math.min(size, MOST_BYTES) - 1}` } })
    if (!response.ok) throw new Error(`Couldn’t load the file (${response.status}).`)
    const { text, note } = decodeFile(new Uint8Array(await response.arrayBuffer()), !whole)
    const read = parseTable(text, { tabs, whole })
    if (read === null) return answer({ is: 'no table' })
    table = read
    order = Uint32Array.from(read.rows.keys())
    const { columns, numeric, rows, cut } = read
    const notes = [...(note === undefined ? [] : [note]), ...read.notes]
    answer({ is: 'opened', columns, numeric, widths: widthsOf(read), rows: rows.length, cut, notes })
  } catch (error) {
    answer({ is: 'failed', why: messageOf(error) })
  }
}

/** Characters. */
function widthsOf({ columns, rows }: Table): number[] {
  const sample = rows.slice(0, SAMPLE)
  return columns.map((name, at) =>
    sample.reduce((most, row) => Math.max(most, row[at]?.length ?? 0), name.length + 3),
  )
}
