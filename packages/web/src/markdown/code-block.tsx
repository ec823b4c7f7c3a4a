import { memo, useMemo } from 'react'
import { CopyButton } from '../ui/copy-button.tsx'
import { Revealed } from '../ui/revealed.tsx'
import { highlight } from './highlight.ts'

/** A fenced block: language, copy button, colours. Grows while it streams. */
export const CodeBlock = memo(function CodeBlock(props: { code: string; language: string }) {
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
