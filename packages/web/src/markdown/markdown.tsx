/**
 * The model's markdown, also unfinished. What the text says is shown, never done: raw HTML stays
 * text, nothing of the web is fetched (an image is a link to it), and a link leads to the web, to
 * mail, or to a file of the reader's own workspace.
 */
import { ImageOff } from 'lucide-react'
import {
  type ComponentProps,
  createContext,
  isValidElement,
  lazy,
  memo,
  type ReactNode,
  Suspense,
  useContext,
  useMemo,
} from 'react'
import {
  Streamdown,
  defaultRehypePlugins,
  defaultRemarkPlugins,
  type Components,
  useIsCodeFenceIncomplete,
} from 'streamdown'
import { Boundary } from '../ui/boundary.tsx'
import { Revealed } from '../ui/revealed.tsx'
import { safeHref } from './links.ts'
import { mathInCode, withMath } from './math-source.ts'
import { isNestedTooDeep, limitDepth } from './nesting.ts'
import { WorkspaceImage, WorkspaceLink } from './workspace-file.tsx'
import { workspacePath, workspacePathInCode } from './workspace-path.ts'
import { CopyButton } from '../ui/copy-button.tsx'
import { emphasisPlugin } from './emphasis.ts'
import { highlight } from './highlight.ts'
import { revealInvisible } from '../lib/invisible.ts'

// Without the `raw` plugin HTML is text from the start; sanitising stays as the second lock.
const REHYPE = [
  limitDepth,
  ...Object.entries(defaultRehypePlugins)
    .filter(([name]) => name === 'sanitize')
    .map(([, plugin]) => plugin),
  revealPlugin,
]

// A single tilde is “about”: `5~7 units`.
const REMARK: NonNullable<ComponentProps<typeof Streamdown>['remarkPlugins']> = [
  ...Object.entries(defaultRemarkPlugins).map(([name, plugin]) =>
    name === 'gfm' && Array.isArray(plugin) ? ([plugin[0], { singleTilde: false }] as typeof plugin) : plugin,
  ),
  emphasisPlugin,
]

function textOf(node: ReactNode): string {
  if (typeof node === 'string' || typeof node === 'number') return String(node)
  if (Array.isArray(node)) return node.map(textOf).join('')
  if (isValidElement<{ children?: ReactNode }>(node)) return textOf(node.props.children)
  return ''
}

const MathText = lazy(() => import('./math.tsx'))
const Diagram = lazy(() => import('./diagram.tsx'))

/** The folder of the text in the workspace: names are relative to it. Empty: the top. */
const Folder = createContext('')
export const MarkdownFolder = Folder.Provider

/** Pictures that the text brings along: addresses of data by the address in the text. */
const Attached = createContext<ReadonlyMap<string, string>>(new Map())
export const AttachedPictures = Attached.Provider

function InlineCode(props: { children?: ReactNode }) {
  const math = mathInCode(textOf(props.children))
  if (math !== undefined)
    return (
      <Suspense fallback={<span className="text-muted">{math}</span>}>
        <MathText source={math} block={false} />
      </Suspense>
    )
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
    const text = textOf(code?.props.children ?? children)
    if (language === 'math') return <MathBlock source={text.trim()} />
    if (language === 'mermaid') return <DiagramBlock source={text} />
    return <CodeBlock code={text} language={language} />
  },
  code: ({ children }) => <InlineCode>{children}</InlineCode>,
  inlineCode: ({ children }) => <InlineCode>{children}</InlineCode>,
  a: ({ children, href }) => <Link href={href}>{children}</Link>,
  img: ({ src, alt }) => <Picture src={typeof src === 'string' ? src : undefined} alt={alt ?? ''} />,
}

function Link(props: { href: string | undefined; children: ReactNode }) {
  const folder = useContext(Folder)
  const safe = safeHref(props.href)
  if (safe === undefined) {
    const path = workspacePath(props.href, folder)
    return path === undefined ? (
      <span>{props.children}</span>
    ) : (
      <WorkspaceLink path={path}>{props.children}</WorkspaceLink>
    )
  }
  return (
    <a href={safe} target="_blank" rel="noopener noreferrer nofollow" title={safe}>
      {props.children}
    </a>
  )
}

function Picture(props: { src: string | undefined; alt: string }) {
  const folder = useContext(Folder)
  const attached = useContext(Attached).get(props.src ?? '')
  if (attached !== undefined) return <img src={attached} alt={props.alt} className="max-w-full" />
  const path = workspacePath(props.src, folder)
  if (path !== undefined) return <WorkspaceImage path={path} alt={props.alt} />
  const safe = safeHref(props.src)
  return (
    <span className="inline-flex items-center gap-1.5 rounded-md border border-line bg-sunken px-2 py-0.5 text-sm text-muted">
      <ImageOff className="size-3.5 shrink-0" aria-hidden />
      <span>
        Image not loaded: <Revealed text={props.alt === '' ? 'no description' : props.alt} />
      </span>
      {safe !== undefined && (
        <a href={safe} target="_blank" rel="noopener noreferrer nofollow" title={safe}>
          {new URL(safe).host}
        </a>
      )}
    </span>
  )
}

/**
 * `streaming`: the end of the text may be in the middle of a construct; close it for now. A text
 * that cannot be laid out is shown as it was written.
 */
export const Markdown = memo(function Markdown(props: { text: string; streaming: boolean }) {
  const tooDeep = useMemo(() => isNestedTooDeep(props.text), [props.text])
  const source = (
    <div
      dir="auto"
      data-testid="markdown-source"
      className="whitespace-pre-wrap [overflow-wrap:anywhere] [unicode-bidi:plaintext]"
    >
      <Revealed text={props.text} />
    </div>
  )
  return tooDeep ? (
    source
  ) : (
    <Boundary fallback={source}>
      <LaidOut {...props} />
    </Boundary>
  )
})

function LaidOut(props: { text: string; streaming: boolean }) {
  const text = useMemo(() => withMath(props.text, props.streaming), [props.text, props.streaming])
  return (
    <Streamdown
      className="prose"
      components={COMPONENTS}
      rehypePlugins={REHYPE}
      remarkPlugins={REMARK}
      parseIncompleteMarkdown={props.streaming}
      controls={false}
      linkSafety={{ enabled: false }}
    >
      {text}
    </Streamdown>
  )
}

/** Has a height before its letters have come. */
function MathBlock(props: { source: string }) {
  const written = <span className="block py-3 text-center text-muted">{props.source}</span>
  return (
    <div className="md-math-block" tabIndex={0} role="group" aria-label="Formula">
      <Suspense fallback={written}>
        {useIsCodeFenceIncomplete() ? written : <MathText source={props.source} block />}
      </Suspense>
    </div>
  )
}

/** The source while it is written, then its picture, in a frame that stays as high as it is. */
function DiagramBlock(props: { source: string }) {
  const source = props.source.trimEnd()
  const written = <pre className="code size-full overflow-auto px-3.5 py-3">{source}</pre>
  return (
    <figure dir="ltr" className="my-3 overflow-hidden rounded-lg border border-line bg-sunken">
      <figcaption className="flex h-8 items-center justify-between border-b border-line pr-1 pl-3">
        <span className="font-mono text-2xs text-faint">diagram</span>
        <CopyButton text={source} what="diagram" />
      </figcaption>
      <div className="h-80 max-sm:h-64">
        <Suspense fallback={written}>
          {useIsCodeFenceIncomplete() ? written : <Diagram source={source} />}
        </Suspense>
      </div>
    </figure>
  )
}

/** A fenced block: language, copy button, colours. Grows while it streams. */
const CodeBlock = memo(function CodeBlock(props: { code: string; language: string }) {
  const code = props.code.replace(/\n$/, '')
  const tokens = useMemo(() => highlight(code, props.language), [code, props.language])
  return (
    <figure dir="ltr" className="my-3 overflow-hidden rounded-lg border border-line bg-sunken">
      <figcaption className="flex h-8 items-center justify-between border-b border-line pr-1 pl-3">
        <span className="font-mono text-2xs text-faint">
          {props.language === '' ? 'text' : props.language}
        </span>
        <CopyButton text={code} what="code" />
      </figcaption>
      {/* Focusable, because a wide block scrolls and the keyboard must reach it. */}
      <pre className="code overflow-x-auto px-3.5 py-3" tabIndex={0} role="group" aria-label="Code">
        <code>
          {tokens.map((token, index) =>
            token.kind === undefined ? (
              // oxlint-disable-next-line react/no-array-index-key
              <Revealed key={index} text={token.text} />
            ) : (
              // Tokens have no identity beyond their place.
              // oxlint-disable-next-line react/no-array-index-key
              <span key={index} className={`tok-${token.kind}`}>
                <Revealed text={token.text} />
              </span>
            ),
          )}
        </code>
      </pre>
    </figure>
  )
})

/* Invisible characters of a message become a `mark`, which the page shows as it does everywhere. */

/** The inspected part of a node of the HTML tree. */
interface TreeNode {
  type: string
  tagName?: string
  value?: string
  properties?: Record<string, unknown>
  children?: TreeNode[]
}

/** A plugin of rehype. */
function revealPlugin(): (tree: TreeNode) => void {
  return (tree) => reveal(tree)
}

function reveal(node: TreeNode): void {
  if (node.children === undefined) return
  node.children = node.children.flatMap((child) => {
    reveal(child)
    return child.type === 'text' && child.value !== undefined ? revealed(child, child.value) : [child]
  })
}

function revealed(node: TreeNode, value: string): TreeNode[] {
  const parts = revealInvisible(value)
  if (parts.every(({ hidden }) => hidden === undefined)) return [node]
  return parts.map(({ text, hidden }) => {
    const piece = { type: 'text', value: text }
    return hidden === undefined
      ? piece
      : { type: 'element', tagName: 'mark', properties: {}, children: [piece] }
  })
}
