/** JSON as a tree, of which only what is open and near exists. */
import { messageOf } from '@sandlot/shared/base/errors'
import { ChevronRight } from 'lucide-react'
import { useMemo, useState } from 'react'
import { cn } from '../../lib/cn.ts'
import { formatCount } from '../../lib/format.ts'
import { Revealed } from '../../ui/revealed.tsx'
import { ExactNumber, type JsonRow, jsonRows, parseJson } from '../json-tree.ts'
import { endingOf } from '../kinds.ts'
import { CannotShow, EncodingNote, useText, type ViewProps, Waiting, Windowed } from '../parts.tsx'
import TextView from './text-view.tsx'

/** A larger one would hold up the page while it is read. */
const MOST_BYTES = 8 * 1024 * 1024
const SHOWN_CHARS = 500

export default function JsonView({ file }: ViewProps) {
  const read = useText(file, MOST_BYTES)
  const [toggled, setToggled] = useState<ReadonlySet<string>>(new Set())
  const parsed = useMemo(() => {
    if (read.state !== 'read') return null
    if (read.more) return { why: 'This file is too large for a tree view, so it’s shown as text.' }
    try {
      return { value: parseJson(read.text, /^(jsonl|ndjson)$/.test(endingOf(file.path))) }
    } catch (error) {
      return { why: `This isn’t valid JSON, so it’s shown as text: ${messageOf(error)}` }
    }
  }, [read, file.path])
  const rows = useMemo(
    () => (parsed === null || !('value' in parsed) ? [] : jsonRows(parsed.value, toggled)),
    [parsed, toggled],
  )
  if (read.state === 'failed') return <CannotShow>{read.why}</CannotShow>
  if (read.state === 'reading' || parsed === null) return <Waiting>Loading…</Waiting>
  if (!('value' in parsed)) return <TextView file={file} reason={parsed.why} />
  return (
    <>
      <EncodingNote note={read.note} />
      <Windowed count={rows.length} rowHeight={24} label={`Content of ${file.path}`} className="code py-2">
        {(index) => {
          const row = rows[index]
          if (row === undefined) return null
          return (
            <Row
              row={row}
              onToggle={() =>
                setToggled((now) => {
                  const next = new Set(now)
                  if (!next.delete(row.id)) next.add(row.id)
                  return next
                })
              }
            />
          )
        }}
      </Windowed>
    </>
  )
}

function Row(props: { row: JsonRow; onToggle: () => void }) {
  const { row } = props
  const words = (
    <>
      {row.key !== null && (
        <span className="tok-name">
          <Revealed text={row.key} />
          <span className="text-faint">: </span>
        </span>
      )}
      {row.members === undefined ? (
        <Value value={row.value} />
      ) : (
        <span className="text-faint">
          {Array.isArray(row.value)
            ? `[ ${formatCount(row.members, 'item')} ]`
            : `{ ${formatCount(row.members, 'key')} }`}
          {row.left !== undefined &&
            ` · the first ${(row.members - row.left).toLocaleString('en')} are listed`}
        </span>
      )}
    </>
  )
  const place = { paddingInlineStart: `${row.depth * 1.1 + 0.75}rem` }
  if (row.members === undefined || row.members === 0)
    return (
      <div style={place} className="flex h-6 items-center pr-4 whitespace-pre">
        <span className="w-5 shrink-0" />
        {words}
      </div>
    )
  return (
    <button
      type="button"
      aria-expanded={row.open}
      onClick={props.onToggle}
      style={place}
      className="flex h-6 min-w-full items-center pr-4 text-left whitespace-pre hover:bg-hover focus-visible:-outline-offset-2"
    >
      <ChevronRight
        className={cn(
          'mr-1.5 size-3.5 shrink-0 text-faint transition-transform duration-100',
          row.open && 'rotate-90',
        )}
        aria-hidden
      />
      {words}
    </button>
  )
}

function Value({ value }: { value: unknown }) {
  if (value instanceof ExactNumber) return <span className="tok-number">{value.digits}</span>
  if (typeof value === 'string') {
    const shown = JSON.stringify(value.slice(0, SHOWN_CHARS))
    return (
      <span className="tok-string">
        <Revealed
          text={value.length > SHOWN_CHARS ? `${shown} … ${formatCount(value.length, 'character')}` : shown}
        />
      </span>
    )
  }
  return (
    <span className={typeof value === 'number' ? 'tok-number' : 'tok-keyword'}>{JSON.stringify(value)}</span>
  )
}
