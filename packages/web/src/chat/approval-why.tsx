import type { RuleReason } from '@sandlot/shared/rules'
import { useState } from 'react'
import { formatCount } from '../lib/format.ts'
import { Revealed } from './tool-arguments.tsx'

const SHOWN = 3

/** “Why was I asked”: each part of the call that made it so, and what is known about it. */
export function ApprovalWhy(props: { why: readonly RuleReason[] }) {
  const { why } = props
  const [all, setAll] = useState(false)
  if (why.length === 0) return null
  const more = all ? 0 : why.length - SHOWN
  return (
    <ul
      aria-label="Why this asks"
      data-testid="approval-why"
      className="flex flex-col gap-1 text-sm text-muted"
    >
      {why.slice(0, all ? why.length : SHOWN).map(({ part, because }) => (
        <li key={`${part}\n${because}`} className="[overflow-wrap:anywhere]">
          <code className="rounded bg-sunken px-1 py-0.5 text-xs text-ink">
            <Revealed text={part} />
          </code>{' '}
          {because}.
        </li>
      ))}
      {more > 0 && (
        <li>
          <button
            type="button"
            className="rounded underline underline-offset-2 hover:text-ink max-md:py-2"
            onClick={() => setAll(true)}
          >
            Show {formatCount(more, 'more reason')}
          </button>
        </li>
      )}
    </ul>
  )
}
