/** CSV and TSV as a table, sorted and filtered in a worker; only what is on the screen exists. */
import { useVirtualizer, type VirtualItem } from '@tanstack/react-virtual'
import { ArrowDown, ArrowUp } from 'lucide-react'
import { type CSSProperties, type RefObject, useEffect, useRef, useState } from 'react'
import { cn } from '../../lib/cn.ts'
import { formatCount } from '../../lib/format.ts'
import { fileUrl } from '../../net/files.ts'
import { Revealed } from '../../ui/revealed.tsx'
import { SearchField } from '../../ui/search-field.tsx'
import { endingOf } from '../kinds.ts'
import { CannotShow, Note, type ViewProps, Waiting } from '../parts.tsx'
import { type Arrangement, MOST_COLUMNS, MOST_ROWS } from '../table.ts'
import type { TableAnswer, TableAsk } from '../table-worker.ts'
import TextView from './text-view.tsx'

const ROW = 32
/** Rows that are asked for together. */
const PAGE = 100
/** Pixels of a column. */
const CHAR = 7.6
const NARROWEST = 64
const WIDEST = 320

type Opened = Extract<TableAnswer, { is: 'opened' }>
type Rows = Extract<TableAnswer, { is: 'rows' }>['rows']
type State = { is: 'reading' } | Exclude<TableAnswer, { is: 'rows' | 'arranged' }>

export default function TableView({ file }: ViewProps) {
  const [state, setState] = useState<State>({ is: 'reading' })
  const [worker, setWorker] = useState<Worker | null>(null)
  useEffect(() => {
    const made = new Worker(new URL('../table-worker.ts', import.meta.url), { type: 'module' })
    made.addEventListener('message', ({ data }: MessageEvent<TableAnswer>) => {
      if (data.is !== 'rows' && data.is !== 'arranged') setState(data)
    })
    made.addEventListener('error', () =>
      setState({ is: 'failed', why: 'Couldn’t read this table. Download the file instead.' }),
    )
    const tabs = /^(tsv|tab)$/.test(endingOf(file.path))
    const ask: TableAsk = { do: 'open', url: fileUrl(file.path), size: file.size, tabs }
    if (file.size > 0) made.postMessage(ask)
    setState({ is: 'reading' })
    setWorker(made)
    return () => made.terminate()
  }, [file])
  if (file.size === 0) return <CannotShow>This file is empty.</CannotShow>
  if (state.is === 'failed') return <CannotShow>{state.why}</CannotShow>
  if (state.is === 'no table')
    return <TextView file={file} reason="No columns found, so this file is shown as text." />
  if (state.is === 'reading' || worker === null) return <Waiting>Loading…</Waiting>
  return <Grid table={state} worker={worker} path={file.path} />
}

/** Requests rows from the worker, and holds those that have arrived. */
function useRows(worker: Worker, total: number) {
  const [wanted, setWanted] = useState<Arrangement>({ sort: null, filter: '' })
  const [count, setCount] = useState(total)
  const [pages, setPages] = useState<ReadonlyMap<number, Rows>>(new Map())
  const turn = useRef(0)
  const asked = useRef(new Set<number>())
  const ask = (what: TableAsk) => worker.postMessage(what)
  useEffect(() => {
    const onMessage = ({ data }: MessageEvent<TableAnswer>) => {
      if (!('turn' in data) || data.turn !== turn.current) return
      if (data.is === 'arranged') {
        asked.current = new Set()
        setPages(new Map())
        setCount(data.rows)
      } else setPages((known) => new Map(known).set(data.from / PAGE, data.rows))
    }
    worker.addEventListener('message', onMessage)
    return () => worker.removeEventListener('message', onMessage)
  }, [worker])
  return {
    wanted,
    count,
    pages,
    arrange: (to: Arrangement) => {
      setWanted(to)
      ask({ do: 'arrange', turn: ++turn.current, ...to })
    },
    show: (from: number, to: number) => {
      for (let page = Math.floor(from / PAGE); page <= Math.floor(to / PAGE); page++) {
        if (asked.current.has(page)) continue
        asked.current.add(page)
        ask({ do: 'rows', turn: turn.current, from: page * PAGE, to: (page + 1) * PAGE })
      }
    },
  }
}

function Grid(props: { table: Opened; worker: Worker; path: string }) {
  const { columns, numeric, rows: total, cut, notes } = props.table
  const { wanted, count, pages, arrange, show } = useRows(props.worker, total)
  const scrolled = useRef<HTMLDivElement>(null)
  const gutter = String(total).length * CHAR + 24
  const { rows, across } = useWindow(scrolled, props.table, count, gutter)
  const shown = rows.getVirtualItems()
  const [first, last] = [shown[0]?.index ?? 0, shown.at(-1)?.index ?? 0]
  useEffect(() => show(first, last))
  const cells = across.getVirtualItems()
  const width = across.getTotalSize()
  const whole = { width: `max(100%, ${width}px)` }
  const sortBy = (column: number) => {
    rows.scrollToOffset(0)
    arrange({ ...wanted, sort: nextSort(wanted.sort, column) })
  }
  return (
    <>
      <FilterBar
        filter={wanted.filter}
        count={count}
        total={total}
        onFilter={(filter) => {
          rows.scrollToOffset(0)
          arrange({ ...wanted, filter })
        }}
      />
      {cut && <CutNote />}
      {notes.map((note) => (
        <Note key={note}>{note}</Note>
      ))}
      <div
        ref={scrolled}
        tabIndex={0}
        role="table"
        aria-label={`Table of ${props.path}`}
        aria-rowcount={count + 1}
        aria-colcount={columns.length}
        className="min-h-0 flex-1 overflow-auto text-xs tabular-nums focus-visible:-outline-offset-2"
      >
        <HeadRow table={props.table} cells={cells} sort={wanted.sort} style={whole} onSort={sortBy} />
        <div role="rowgroup" className="relative" style={{ height: count * ROW, ...whole }}>
          {shown.map(({ index, start, key }) => (
            <BodyRow
              key={key}
              index={index}
              row={pages.get(Math.floor(index / PAGE))?.[index % PAGE]}
              cells={cells}
              numeric={numeric}
              gutter={gutter}
              style={{ transform: `translateY(${start}px)`, height: ROW, ...whole }}
            />
          ))}
        </div>
        {count === 0 && <NoRows filter={wanted.filter} />}
      </div>
    </>
  )
}

function useWindow(
  scrolled: RefObject<HTMLElement | null>,
  { columns, widths }: Opened,
  count: number,
  gutter: number,
) {
  const rows = useVirtualizer({
    count,
    getScrollElement: () => scrolled.current,
    estimateSize: () => ROW,
    overscan: 10,
    scrollPaddingStart: ROW,
  })
  const across = useVirtualizer({
    count: columns.length,
    horizontal: true,
    getScrollElement: () => scrolled.current,
    estimateSize: (at) => Math.min(WIDEST, Math.max(NARROWEST, (widths[at] ?? 0) * CHAR + 24)),
    overscan: 3,
    paddingStart: gutter,
  })
  return { rows, across }
}

/** Up, down, and then as in the file. */
function nextSort(sort: Arrangement['sort'], column: number): Arrangement['sort'] {
  if (sort?.column !== column) return { column, down: false }
  return sort.down ? null : { column, down: true }
}

function CutNote() {
  return (
    <Note>
      Only the first part of this table is shown: up to {MOST_ROWS.toLocaleString('en')} rows, {MOST_COLUMNS}{' '}
      columns and 64 MiB. Download the file to see the rest.
    </Note>
  )
}

function HeadRow(props: {
  table: Opened
  cells: readonly VirtualItem[]
  sort: Arrangement['sort']
  style: CSSProperties
  onSort: (column: number) => void
}) {
  const { cells, sort } = props
  const { columns, numeric } = props.table
  return (
    <div role="rowgroup" className="sticky top-0 z-10 bg-panel" style={props.style}>
      <div role="row" aria-rowindex={1} className="relative border-b border-line" style={{ height: ROW }}>
        {cells.map((cell) => (
          <ColumnHead
            key={cell.key}
            cell={cell}
            title={columns[cell.index] ?? ''}
            numeric={numeric[cell.index] === true}
            down={sort?.column === cell.index ? sort.down : undefined}
            onSort={() => props.onSort(cell.index)}
          />
        ))}
      </div>
    </div>
  )
}

function NoRows({ filter }: { filter: string }) {
  return (
    <p className="sticky left-0 px-4 py-6 text-sm text-muted">
      {filter === '' ? 'This table has no rows.' : `No rows contain “${filter}”.`}
    </p>
  )
}

function FilterBar(props: {
  filter: string
  count: number
  total: number
  onFilter: (filter: string) => void
}) {
  const { count, total } = props
  return (
    <div className="flex items-center gap-3 border-b border-line px-3 py-2">
      <SearchField
        label="Show only rows with"
        placeholder="Filter rows"
        compact
        value={props.filter}
        onChange={props.onFilter}
      />
      <span role="status" className="shrink-0 text-xs text-muted tabular-nums">
        {count === total
          ? formatCount(total, 'row')
          : `${count.toLocaleString('en')} of ${formatCount(total, 'row')}`}
      </span>
    </div>
  )
}

/** `down`: the order, of the column that sorts. */
function ColumnHead(props: {
  cell: VirtualItem
  title: string
  numeric: boolean
  down: boolean | undefined
  onSort: () => void
}) {
  const { title, numeric, down } = props
  const { index, start, size } = props.cell
  return (
    <div
      role="columnheader"
      aria-colindex={index + 1}
      aria-sort={down === undefined ? 'none' : down ? 'descending' : 'ascending'}
      className="absolute top-0"
      style={{ left: start, width: size, height: ROW }}
    >
      <button
        type="button"
        title={title}
        onClick={props.onSort}
        className={cn(
          'flex size-full items-center gap-1 px-3 font-medium hover:bg-hover focus-visible:-outline-offset-2',
          numeric && 'flex-row-reverse',
        )}
      >
        <span className="min-w-0 truncate">
          <Revealed text={title} />
        </span>
        {down === true && <ArrowDown className="size-3 shrink-0 text-accent" aria-hidden />}
        {down === false && <ArrowUp className="size-3 shrink-0 text-accent" aria-hidden />}
      </button>
    </div>
  )
}

/** `row`: undefined until its page has arrived. */
function BodyRow(props: {
  index: number
  row: Rows[number] | undefined
  cells: readonly VirtualItem[]
  numeric: readonly boolean[]
  gutter: number
  style: CSSProperties
}) {
  const { index, row, cells, numeric, gutter } = props
  return (
    <div
      role="row"
      aria-rowindex={index + 2}
      className="absolute top-0 left-0 border-b border-line hover:bg-hover"
      style={props.style}
    >
      <span
        aria-hidden
        className="sticky left-0 z-1 inline-flex h-full items-center justify-end bg-canvas pr-2 text-faint"
        style={{ width: gutter }}
      >
        {row?.no}
      </span>
      {cells.map(({ index: at, start: left, size, key: column }) => (
        <div
          key={column}
          role="cell"
          aria-colindex={at + 1}
          title={row?.cells[at]}
          className={cn(
            'absolute top-0 truncate px-3 leading-[2rem] whitespace-nowrap',
            numeric[at] === true && 'text-right',
          )}
          style={{ left, width: size }}
        >
          {row === undefined ? (
            <span className="inline-block h-2 w-2/3 rounded bg-active align-middle" />
          ) : (
            <Revealed text={row.cells[at] ?? ''} />
          )}
        </div>
      ))}
    </div>
  )
}
