/** The number of approvals that the person answered, and rules that would have answered them. */
import { type RuleMatch, describeMatch } from '@sandlot/shared/chat/rules'
import type { RulePreview } from '@sandlot/shared/account/rules-api'
import { useState } from 'react'
import { useResource } from '../state/use-resource.ts'
import { formatCount } from '../lib/format.ts'
import { call } from '../net/call.ts'
import { Alert } from '../ui/alert.tsx'
import { Button } from '../ui/button.tsx'
import { Revealed } from '../ui/revealed.tsx'
import { Preview } from './new-rule-form.tsx'
import { useAttempt } from '../lib/use-attempt.ts'

/** `known`: the number of rules; a change fetches again. */
export function SavingRules(props: { known: number; onAdded: () => void }) {
  const { known } = props
  const { data: report, problem } = useResource(String(known), (signal) => call('listAsked', { signal }), {
    keep: true,
  })
  if (problem !== null) return <Alert>How often you were asked could not be read. {problem}</Alert>
  if (report === null) return <p className="text-sm text-muted">Loading…</p>
  const { days, asked, saving } = report
  return (
    <section data-testid="saving-rules" aria-label="Suggested rules" className="flex flex-col gap-2">
      <p className="text-sm text-muted">
        In the last {days} days you were asked{' '}
        {asked === 0 ? 'nothing' : asked === 1 ? 'once' : `${asked.toLocaleString('en')} times`}.
        {saving.length > 0 && ' These rules would have given the same answers:'}
      </p>
      {saving.length > 0 && (
        <ul className="divide-y divide-line rounded-lg border border-line">
          {saving.map(({ match, times, title }) => (
            <SavingRule
              key={JSON.stringify(match)}
              match={match}
              times={times}
              title={title}
              onAdded={props.onAdded}
            />
          ))}
        </ul>
      )}
    </section>
  )
}

function SavingRule(props: { match: RuleMatch; times: number; title: string; onAdded: () => void }) {
  const { match, times, title } = props
  const [shown, setShown] = useState<RulePreview | null>(null)
  const { busy, problem, attempt } = useAttempt()
  const rule = { effect: 'allow', match } as const
  const words = describeMatch(match)
  return (
    <li className="flex flex-col gap-2 py-2 pr-2 pl-3">
      <div className="flex items-center gap-3">
        <span className="min-w-0 flex-1">
          <span className="block text-sm [overflow-wrap:anywhere]">
            <span className="font-semibold">Allow</span> <Revealed text={words} />
          </span>
          <span className="block truncate text-xs text-muted">
            {formatCount(times, 'question')}, the last: <Revealed text={title} />
          </span>
        </span>
        {shown === null ? (
          <Button
            size="sm"
            disabled={busy}
            aria-label={`Preview allowing ${words}`}
            onClick={() => void attempt(async () => setShown(await call('previewRule', { body: rule })))}
          >
            Preview
          </Button>
        ) : (
          <Button
            size="sm"
            variant="primary"
            disabled={busy}
            aria-label={`Add rule: allow ${words}`}
            onClick={() =>
              void attempt(async () => {
                await call('addRule', { body: rule })
                props.onAdded()
              })
            }
          >
            Add rule
          </Button>
        )}
      </div>
      {problem !== null && <Alert>{problem}</Alert>}
      {shown !== null && <Preview shown={shown} />}
    </li>
  )
}
