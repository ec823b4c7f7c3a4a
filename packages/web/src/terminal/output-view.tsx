import { memo, useEffect, useMemo, useRef, useState } from 'react'
import { gapsOf, type LiveOutput } from '@sandlot/shared/transcript/live-output'
import { messageOf } from '@sandlot/shared/base/errors'
import { formatBytes } from '@sandlot/shared/base/format-bytes'
import { AnsiText, type Block, type Line, type Rendered } from './ansi-text.ts'
import { lookOf } from './palette.ts'
import { fetchOutputRange, fetchOutputTail } from '../net/outputs.ts'
import type { Filled } from './live-ansi.ts'

/** Rendered terminal text. Full blocks never change, so only the last one is rendered again. */
export function AnsiView(props: { rendered: Rendered }) {
  return props.rendered.blocks.map((block) => <BlockView key={block.id} block={block} />)
}

const BlockView = memo(
  function BlockView(props: { block: Block }) {
    return (
      <div className="term-block">
        {props.block.lines.map((line, index) => (
          // A line has no identity beyond its place.
          // oxlint-disable-next-line react/no-array-index-key
          <LineView key={index} line={line} />
        ))}
      </div>
    )
  },
  (before, after) => before.block === after.block,
)

const LineView = memo(function LineView(props: { line: Line }) {
  if (props.line.length === 0) return <div>{'\n'}</div>
  return (
    <div>
      {props.line.map((span, index) => {
        if (span.style === null) return span.text
        const look = lookOf(span.style)
        return (
          // oxlint-disable-next-line react/no-array-index-key
          <span key={index} className={look.className} style={look.style}>
            {span.text}
          </span>
        )
      })}
    </div>
  )
})

/*
 * Missing bytes of a live output, fetched by range from what is stored. Only small gaps: the rest
 * is a link away.
 */

/**
 * Bytes. The snapshot of a resume holds 64 KiB of the end; what lies before a longer one is not
 * worth the wait.
 */
const LARGEST_GAP = 64 * 1024
const NOTHING: Filled = new Map()

export function useFilledGaps(output: LiveOutput, url: string): Filled {
  const [filled, setFilled] = useState<Filled>(NOTHING)
  const asked = useRef(new Set<number>())
  const gaps = useMemo(() => gapsOf(output).filter((gap) => gap.to - gap.from <= LARGEST_GAP), [output])
  useEffect(() => {
    for (const gap of gaps) {
      if (asked.current.has(gap.from)) continue
      asked.current.add(gap.from)
      fetchOutputRange(url, gap.from, gap.to).then(
        (text) => setFilled((known) => new Map(known).set(gap.from, text)),
        // Not tried again: the notice in its place leads to the whole output.
        (error: unknown) => console.warn('A gap in the output stays open.', error),
      )
    }
  }, [gaps, url])
  return filled
}

/*
 * The stored output of a finished call, once it is shown: all of it, or its beginning and its
 * end.
 */

/** Bytes. */
const WHOLE = 64 * 1024
const HEAD = 16 * 1024
const TAIL = 32 * 1024
/** Only a text of very short lines has more in that many bytes. */
const MAX_LINES = 15_000

type StoredOutput =
  | { state: 'loading' }
  | { state: 'ready'; rendered: Rendered }
  | { state: 'unreadable'; message: string }

/** `bytes`: how many are stored. `wanted` false: nothing is fetched. */
export function useStoredOutput(bytes: number, url: string, wanted: boolean): StoredOutput {
  const [output, setOutput] = useState<StoredOutput>({ state: 'loading' })
  useEffect(() => {
    if (!wanted) return
    const controller = new AbortController()
    readOutput(url, bytes, controller.signal).then(
      (rendered) => setOutput({ state: 'ready', rendered }),
      (error: unknown) => {
        if (!controller.signal.aborted) setOutput({ state: 'unreadable', message: messageOf(error) })
      },
    )
    return () => controller.abort()
  }, [url, bytes, wanted])
  return output
}

async function readOutput(url: string, bytes: number, signal: AbortSignal): Promise<Rendered> {
  const ansi = new AnsiText(MAX_LINES)
  if (bytes <= WHOLE) {
    ansi.feed(await fetchOutputRange(url, 0, bytes, signal))
  } else {
    const [head, tail] = await Promise.all([
      fetchOutputRange(url, 0, HEAD, signal),
      fetchOutputTail(url, TAIL, signal),
    ])
    ansi.feed(head)
    ansi.feed(`\u001b[0m\n\n⋯ ${formatBytes(bytes - HEAD - TAIL)} not shown ⋯\n\n`)
    ansi.feed(tail)
  }
  return ansi.render()
}
