/** Math as KaTeX sets it. Loaded when a text has some. */
import katex from 'katex'
import 'katex/dist/katex.min.css'
import { useMemo } from 'react'

/** UTF-16 units; what is longer is shown as it is written. */
const MOST_CHARS = 5000

export default function MathText(props: { source: string; block: boolean }) {
  const { source, block } = props
  const html = useMemo(() => setMath(source, block), [source, block])
  if (html === undefined) return <MathSource source={source} />
  // KaTeX writes its markup itself: what a text says is in it as text alone.
  // oxlint-disable-next-line react/no-danger
  return (
    <span dir="ltr" className={block ? 'md-math' : undefined} dangerouslySetInnerHTML={{ __html: html }} />
  )
}

/** Undefined: it is unfinished, or no LaTeX. */
function setMath(source: string, block: boolean): string | undefined {
  if (source.length > MOST_CHARS) return undefined
  try {
    return katex.renderToString(source, {
      displayMode: block,
      trust: false,
      strict: 'ignore',
      maxExpand: 200,
      maxSize: 20,
    })
  } catch {
    return undefined
  }
}

function MathSource(props: { source: string }) {
  return (
    <code dir="ltr" className="inline">
      {props.source}
    </code>
  )
}
