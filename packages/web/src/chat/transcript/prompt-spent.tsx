import type { EndEntry } from '@sandlot/shared/transcript/entries'
import { memo } from 'react'
import { spentLine, spentRows } from '../../lib/usage-words.ts'

/** One quiet line of what a prompt took; opened, all that is known of it. */
export const PromptSpent = memo(function PromptSpent(props: { entry: EndEntry }) {
  const { spent, tookMs } = props.entry
  return (
    <details data-testid="prompt-spent" className="text-xs text-faint">
      <summary className="inline-block cursor-pointer rounded-md py-0.5 tabular-nums hover:text-ink pointer-coarse:py-3.5">
        {spentLine(spent, tookMs) || 'What it took'}
      </summary>
      <dl className="mt-1 mb-1 grid w-fit max-w-full grid-cols-[auto_1fr] gap-x-4 gap-y-0.5 rounded-lg border border-line px-3 py-2 text-muted">
        {spentRows(spent).map(([name, value]) => (
          <div key={name} className="contents">
            <dt>{name}</dt>
            <dd className="tabular-nums">{value}</dd>
          </div>
        ))}
      </dl>
    </details>
  )
})
