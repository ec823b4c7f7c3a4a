/** A patch, file by file. */
import { useMemo } from 'react'
import { DiffRow, DiffStat } from '../diff-view.tsx'
import { Revealed } from '../../ui/revealed.tsx'
import { CannotShow, EncodingNote, useText, type ViewProps, Waiting, Windowed } from '../parts.tsx'
import { patchRows } from '../patch.ts'
import TextView from './text-view.tsx'

const MOST_BYTES = 4 * 1024 * 1024

export default function PatchView({ file }: ViewProps) {
  const read = useText(file, MOST_BYTES)
  const rows = useMemo(() => (read.state === 'read' && !read.more ? patchRows(read.text) : []), [read])
  if (read.state === 'failed') return <CannotShow>{read.why}</CannotShow>
  if (read.state === 'reading') return <Waiting>Loading…</Waiting>
  if (rows.length === 0)
    return (
      <TextView
        file={file}
        reason={
          read.more
            ? 'This diff is too large to show by file, so it’s shown as text.'
            : 'This file isn’t a diff, so it’s shown as text.'
        }
      />
    )
  return (
    <>
      <EncodingNote note={read.note} />
      <Windowed
        count={rows.length}
        rowHeight={20}
        wraps
        label={`Changes of ${file.path}`}
        className="code text-xs"
      >
        {(index) => {
          const row = rows[index]
          if (row === undefined) return null
          if (row.type === 'file')
            return (
              <div className="flex items-center gap-3 border-y border-line bg-panel px-3 py-1.5">
                <span className="min-w-0 flex-1 truncate text-ink">
                  <Revealed text={row.path} />
                </span>
                <DiffStat added={row.added} removed={row.removed} />
              </div>
            )
          if (row.type === 'place')
            return (
              <div className="truncate bg-hover px-3 text-faint select-none">
                <Revealed text={row.text} />
              </div>
            )
          return <DiffRow line={row} />
        }}
      </Windowed>
    </>
  )
}
