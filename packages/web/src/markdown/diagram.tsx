/**
 * A Mermaid diagram. What Mermaid draws is shown as a picture: nothing in it runs, and no style of
 * it reaches the page. Loaded when a text has one.
 */
import mermaid from 'mermaid'
import { useEffect, useState } from 'react'
import { useIsDark } from '../lib/theme.ts'
import { EnlargedImage } from '../ui/enlarged-image.tsx'
import { Spinner } from '../ui/spinner.tsx'

/** UTF-16 units: a larger one would hold up the page while it is laid out. */
const MOST_CHARS = 20_000
/** The image of a node, which Mermaid loads while it measures; escapes may hide its name. */
const IMAGE_NODE = /@\{[^]*(?:\bimg\b|\\[xuU])/
/** Settings that a text may not change: with these it would have the page load something. */
const OWN_SETTINGS = ['htmlLabels', 'themeCSS', 'fontFamily', 'themeVariables', 'dompurifyConfig']

type Drawn = { state: 'drawing' } | { state: 'drawn'; src: string } | { state: 'wrong'; why: string }

/** Its height is fixed, so that nothing moves when the picture comes. */
export default function Diagram(props: { source: string }) {
  const { source } = props
  const dark = useIsDark()
  const [drawn, setDrawn] = useState<Drawn>({ state: 'drawing' })
  useEffect(() => {
    let current = true
    draw(source, dark).then(
      (src) => current && setDrawn({ state: 'drawn', src }),
      (error: unknown) => current && setDrawn({ state: 'wrong', why: firstLine(error) }),
    )
    return () => {
      current = false
    }
  }, [source, dark])
  if (drawn.state === 'drawn')
    return (
      <EnlargedImage
        src={drawn.src}
        alt={`Diagram: ${source.slice(0, 200)}`}
        className="flex size-full bg-canvas p-3"
      >
        <img src={drawn.src} alt="" className="m-auto max-h-full max-w-full" />
      </EnlargedImage>
    )
  return (
    <div className="flex size-full flex-col">
      <p role="status" className="flex items-center gap-2 px-3.5 pt-3 text-xs text-muted">
        {drawn.state === 'drawing' ? (
          <>
            <Spinner /> Drawing the diagram…
          </>
        ) : (
          `Couldn’t draw this diagram: ${drawn.why.replace(/:$/, '.')}`
        )}
      </p>
      <pre
        className="code min-h-0 flex-1 overflow-auto px-3.5 py-3"
        tabIndex={0}
        role="group"
        aria-label="Diagram source"
      >
        {source}
      </pre>
    </div>
  )
}

function firstLine(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).split('\n')[0]?.slice(0, 200) ?? ''
}

/** Mermaid has one configuration and one place to measure in: one diagram after the other. */
let turn: Promise<unknown> = Promise.resolve()
let count = 0

function draw(source: string, dark: boolean): Promise<string> {
  if (source.length > MOST_CHARS) return Promise.reject(new Error('it’s too large.'))
  if (IMAGE_NODE.test(source)) return Promise.reject(new Error('it loads an image.'))
  const drawing = turn.then(async () => {
    mermaid.initialize({
      startOnLoad: false,
      securityLevel: 'strict',
      secure: [
        'secure',
        'securityLevel',
        'startOnLoad',
        'maxTextSize',
        'maxEdges',
        'suppressErrorRendering',
        ...OWN_SETTINGS,
      ],
      suppressErrorRendering: true,
      htmlLabels: false,
      maxTextSize: MOST_CHARS,
      theme: 'base',
      // A picture knows no letters of the page.
      fontFamily: 'system-ui, sans-serif',
      themeVariables: { fontSize: '14px', darkMode: dark, ...(dark ? DARK : LIGHT) },
    })
    const place = document.createElement('div')
    place.className = 'diagram-drawing'
    document.body.append(place)
    try {
      const { svg } = await mermaid.render(`diagram-${++count}`, source, place)
      return pictureOf(svg)
    } finally {
      place.remove()
    }
  })
  turn = drawing.catch(() => {})
  return drawing
}

/** The markup as XML, which a picture has to be, with its own size. */
function pictureOf(markup: string): string {
  const svg = new DOMParser().parseFromString(markup, 'text/html').querySelector('svg')
  if (svg === null) throw new Error('there is no picture.')
  const [, , width = 0, height = 0] = (svg.getAttribute('viewBox') ?? '').split(' ').map(Number)
  if (!(width > 0 && height > 0)) throw new Error('it is empty.')
  svg.setAttribute('width', String(Math.ceil(width)))
  svg.setAttribute('height', String(Math.ceil(height)))
  svg.style.maxWidth = ''
  return `data:image/svg+xml;charset=utf-8,${encodeURIComponent(new XMLSerializer().serializeToString(svg))}`
}

/** Mermaid reckons with colours and knows no oklch: those of tokens.css, in hex. */
const LIGHT = {
  background: '#fdfcfa',
  primaryColor: '#eef2fc',
  primaryTextColor: '#221f1a',
  primaryBorderColor: '#7d97d6',
  secondaryColor: '#f4f2ee',
  tertiaryColor: '#faf8f5',
  lineColor: '#6b665e',
  textColor: '#221f1a',
  noteBkgColor: '#fbf3dc',
  noteBorderColor: '#d9b65e',
}
const DARK = {
  background: '#151412',
  primaryColor: '#243049',
  primaryTextColor: '#ebe7e0',
  primaryBorderColor: '#6f93d8',
  secondaryColor: '#2a2825',
  tertiaryColor: '#1f1d1b',
  lineColor: '#a29c92',
  textColor: '#ebe7e0',
  noteBkgColor: '#3a3220',
  noteBorderColor: '#8d7433',
}
