/** A text or source code, a window of its lines. */
import { formatBytes } from '@sandlot/shared/base/format-bytes'
import { WrapText } from 'lucide-react'
import { useMemo, useState } from 'react'
import { cn } from '../../lib/cn.ts'
import { highlight } from '../../markdown/highlight.ts'
import { IconButton } from '../../ui/button.tsx'
import { Revealed } from '../../ui/revealed.tsx'
import { endingOf } from '../kinds.ts'
import { CannotShow, EncodingNote, Note, useText, type ViewProps, Waiting, Windowed } from '../parts.tsx'
import { type TextRow, textRows } from '../text-lines.ts'

/** The largest text that is shown. */
const MOST_BYTES = 2 * 1024 * 1024
/** Rows that are coloured together. */
const CHUNK = 200

type Tokens = ReturnType<typeof highlight>

/** `reason`: why it is shown as text. */
export default function TextView(props: ViewProps & { reason?: string }) {
  const { file, reason } = props
  const read = useText(file, MOST_BYTES)
  const [wraps, setWraps] = useState(file.kind === 'text' || file.kind === 'markdown')
  const text = read.state === 'read' ? read.text : ''
  const rows = useMemo(() => textRows(text), [text])
  const colours = useMemo(() => colouring(rows, endingOf(file.path)), [rows, file.path])
  if (read.state === 'reading') return <Waiting>Loading…</Waiting>
  if (read.state === 'failed') return <CannotShow>{read.why}</CannotShow>
  if (file.size === 0) return <CannotShow>This file is empty.</CannotShow>
  const digits = String(rows.length).length
  return (
    <>
      {reason !== undefined && <Note>{reason}</Note>}
      <EncodingNote note={read.note} />
      {read.more && (
        <Note>
          Showing the first {formatBytes(MOST_BYTES)} of {formatBytes(file.size)}. Download the file to see
          the rest.
        </Note>
      )}
      <div className="relative flex min-h-0 flex-1 flex-col">
        <IconButton
          label={wraps ? 'Don’t wrap lines' : 'Wrap lines'}
          aria-pressed={wraps}
          onClick={() => setWraps(!wraps)}
          className="absolute top-1.5 right-3 z-10 border border-line bg-raised aria-pressed:text-accent"
        >
          <WrapText aria-hidden />
        </IconButton>
        <Windowed
          key={String(wraps)}
          count={rows.length}
          rowHeight={20}
          wraps={wraps}
          label={`Content of ${file.path}`}
          className="code py-2"
        >
          {(index) => <TextLine no={rows[index]?.no} digits={digits} wraps={wraps} tokens={colours(index)} />}
        </Windowed>
      </div>
    </>
  )
}

function TextLine(props: { no: number | undefined; digits: number; wraps: boolean; tokens: Tokens }) {
  const { wraps } = props
  return (
    <div className={cn('flex leading-5', !wraps && 'w-max pr-4')}>
      <span
        aria-hidden
        style={{ minWidth: `${props.digits + 2}ch` }}
        className="sticky left-0 shrink-0 bg-canvas pr-[1ch] pl-2 text-right text-faint select-none"
      >
        {props.no}
      </span>
      <span
        dir="ltr"
        className={cn(
          'pl-2',
          wraps ? 'min-w-0 flex-1 pr-4 [overflow-wrap:anywhere] whitespace-pre-wrap' : 'whitespace-pre',
        )}
      >
        <Coloured tokens={props.tokens} />
      </span>
    </div>
  )
}

/** Tokens have no identity beyond their place. */
export function Coloured(props: { tokens: Tokens }) {
  return props.tokens.map((token, index) => (
    // oxlint-disable-next-line react/no-array-index-key
    <span key={index} className={token.kind === undefined ? undefined : `tok-${token.kind}`}>
      <Revealed text={token.text} />
    </span>
  ))
}

/** Some rows at a time, when they are shown: what stands before them is not looked at. */
function colouring(rows: readonly TextRow[], language: string): (index: number) => Tokens {
  const chunks = new Map<number, Tokens[]>()
  return (index) => {
    const chunk = Math.floor(index / CHUNK)
    let lines = chunks.get(chunk)
    if (lines === undefined) {
      const code = rows.slice(chunk * CHUNK, (chunk + 1) * CHUNK)
      lines = byLine(highlight(code.map(({ text }) => text).join('\n'), language))
      chunks.set(chunk, lines)
    }
    return lines[index % CHUNK] ?? []
  }
}

function byLine(tokens: Tokens): Tokens[] {
  const lines: Tokens[] = [[]]
  for (const { text, kind } of tokens) {
    for (const [place, part] of text.split('\n').entries()) {
      if (place > 0) lines.push([])
      if (part !== '') lines.at(-1)?.push({ text: part, kind })
    }
  }
  return lines
}
