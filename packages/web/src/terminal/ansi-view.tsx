import { memo } from 'react'
import type { Block, Line, Rendered } from './ansi-text.ts'
import { lookOf } from './palette.ts'

/** Rendered terminal text. Full blocks never change, so only the last one is drawn anew. */
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
