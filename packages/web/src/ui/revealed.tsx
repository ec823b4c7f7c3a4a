import { useMemo } from 'react'
import { revealInvisible } from '../lib/invisible.ts'

/**
 * Text in which characters that would not be seen, or turn the order of others, are shown by
 * number.
 */
export function Revealed(props: { text: string }) {
  const parts = useMemo(() => revealInvisible(props.text), [props.text])
  return parts.map((part, index) =>
    part.hidden === undefined ? (
      part.text
    ) : (
      <span
        // oxlint-disable-next-line react/no-array-index-key
        key={index}
        data-hidden-character
        title="Invisible character"
        className="mx-0.5 rounded bg-waiting-wash px-1 font-mono text-waiting"
      >
        {part.hidden}
      </span>
    ),
  )
}
