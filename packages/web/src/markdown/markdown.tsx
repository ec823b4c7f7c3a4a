/**
 * The model's markdown, also unfinished. What the text says is shown, never done: raw HTML stays text, nothing of the web is
 * fetched (an image is a link to it), and a link leads to the web, to mail, or to a file of the reader's own workspace.
 */
import { ImageOff } from 'lucide-react'
import { isValidElement, memo, type ReactNode } from 'react'
import { type Components, defaultRehypePlugins, Streamdown } from 'streamdown'
import { Revealed } from '../ui/revealed.tsx'
import { CodeBlock } from './code-block.tsx'
import { safeHref } from './links.ts'
import { revealPlugin } from './reveal-plugin.ts'
import { WorkspaceImage, WorkspaceLink } from './workspace-file.tsx'
import { workspacePath, workspacePathInCode } from './workspace-path.ts'

// Without the `raw` plugin HTML is text from the start; sanitising stays as the second lock.
const REHYPE = [
  ...Object.entries(defaultRehypePlugins)
    .filter(([name]) => name === 'sanitize')
    .map(([, plugin]) => plugin),
  revealPlugin,
]

function textOf(node: ReactNode): string {
  if (typeof node === 'string' || typeof node === 'number') return String(node)
  if (Array.isArray(node)) return node.map(textOf).join('')
  if (isValidElement<{ children?: ReactNode }>(node)) return textOf(node.props.children)
  return ''
}

function InlineCode(props: { children?: ReactNode }) {
  const code = (
    <code dir="ltr" className="inline">
      {props.children}
    </code>
  )
  const path = workspacePathInCode(textOf(props.children))
  return path === undefined ? code : <WorkspaceLink path={path}>{code}</WorkspaceLink>
}

const COMPONENTS: Components = {
  p: ({ children }) => <p dir="auto">{children}</p>,
  h1: ({ children }) => <h1 dir="auto">{children}</h1>,
  h2: ({ children }) => <h2 dir="auto">{children}</h2>,
  h3: ({ children }) => <h3 dir="auto">{children}</h3>,
  h4: ({ children }) => <h4 dir="auto">{children}</h4>,
  h5: ({ children }) => <h5 dir="auto">{children}</h5>,
  h6: ({ children }) => <h6 dir="auto">{children}</h6>,
  ul: ({ children, className }) => (
    <ul dir="auto" className={className}>
      {children}
    </ul>
  ),
  ol: ({ children, start }) => (
    <ol dir="auto" start={start}>
      {children}
    </ol>
  ),
  li: ({ children, className }) => <li className={className}>{children}</li>,
  blockquote: ({ children }) => <blockquote dir="auto">{children}</blockquote>,
  hr: () => <hr />,
  strong: ({ children }) => <strong>{children}</strong>,
  mark: ({ children }) => <Revealed text={textOf(children)} />,
  sub: ({ children }) => <sub>{children}</sub>,
  sup: ({ children }) => <sup>{children}</sup>,
  section: ({ children }) => <section>{children}</section>,
  table: ({ children }) => (
    <div className="md-table" tabIndex={0} role="group" aria-label="Table">
      <table>{children}</table>
    </div>
  ),
  thead: ({ children }) => <thead>{children}</thead>,
  tbody: ({ children }) => <tbody>{children}</tbody>,
  tr: ({ children }) => <tr>{children}</tr>,
  th: ({ children, style }) => (
    <th dir="auto" style={style}>
      {children}
    </th>
  ),
  td: ({ children, style }) => (
    <td dir="auto" style={style}>
      {children}
    </td>
  ),
  input: ({ checked }) => (
    <input
      type="checkbox"
      checked={checked === true}
      readOnly
      disabled
      aria-label={checked === true ? 'done' : 'open'}
    />
  ),
  pre: ({ children }) => {
    const code = isValidElement<{ className?: string; children?: ReactNode }>(children) ? children : undefined
    const language = /language-(\S+)/.exec(code?.props.className ?? '')?.[1] ?? ''
    return <CodeBlock code={textOf(code?.props.children ?? children)} language={language} />
  },
  code: ({ children }) => <InlineCode>{children}</InlineCode>,
  inlineCode: ({ children }) => <InlineCode>{children}</InlineCode>,
  a: ({ children, href }) => {
    const safe = safeHref(href)
    if (safe === undefined) {
      const path = workspacePath(href)
      return path === undefined ? (
        <span>{children}</span>
      ) : (
        <WorkspaceLink path={path}>{children}</WorkspaceLink>
      )
    }
    return (
      <a href={safe} target="_blank" rel="noopener noreferrer nofollow" title={safe}>
        {children}
      </a>
    )
  },
  img: ({ src, alt }) => {
    const address = typeof src === 'string' ? src : undefined
    const path = workspacePath(address)
    if (path !== undefined) return <WorkspaceImage path={path} alt={alt ?? ''} />
    const safe = safeHref(address)
    return (
      <span className="inline-flex items-center gap-1.5 rounded-md border border-line bg-sunken px-2 py-0.5 text-sm text-muted">
        <ImageOff className="size-3.5 shrink-0" aria-hidden />
        <span>
          Image not loaded: <Revealed text={alt === undefined || alt === '' ? 'no description' : alt} />
        </span>
        {safe !== undefined && (
          <a href={safe} target="_blank" rel="noopener noreferrer nofollow" title={safe}>
            {new URL(safe).host}
          </a>
        )}
      </span>
    )
  },
}

/** `streaming`: the end of the text may be in the middle of a construct; close it for now. */
export const Markdown = memo(function Markdown(props: { text: string; streaming: boolean }) {
  return (
    <Streamdown
      className="prose"
      components={COMPONENTS}
      rehypePlugins={REHYPE}
      parseIncompleteMarkdown={props.streaming}
      controls={false}
      linkSafety={{ enabled: false }}
    >
      {props.text}
    </Streamdown>
  )
})
