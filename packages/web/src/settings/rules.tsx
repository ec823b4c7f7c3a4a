import { type Rule, describeMatch } from '@sandlot/shared/chat/rules'
import { useResource } from '../state/use-resource.ts'
import { cn } from '../lib/cn.ts'
import { formatDate } from '../lib/format.ts'
import { call } from '../net/call.ts'
import { Alert } from '../ui/alert.tsx'
import { Button } from '../ui/button.tsx'
import { NewRuleForm } from './new-rule-form.tsx'
import { SavingRules } from './saving-rules.tsx'

export const EFFECT: Record<Rule['effect'], { word: string; colour: string }> = {
  allow: { word: 'Allow', colour: 'text-ink' },
  ask: { word: 'Ask', colour: 'text-waiting' },
  deny: { word: 'Never', colour: 'text-failed' },
}

/** Rules: from answers “always”, from the form, and those for everybody. */
export function Rules() {
  const {
    data: list,
    problem,
    busy,
    reload,
    change,
  } = useResource('rules', (signal) => call('listRules', { signal }))
  return (
    <div className="flex flex-col gap-3" data-testid="rules">
      {problem !== null && <Alert>{problem}</Alert>}
      {list !== null && list.rules.length === 0 && (
        <p className="text-sm text-muted">
          No rules yet. Approvals you answer with “Always” appear here, and can be revoked.
        </p>
      )}
      {list !== null && list.rules.length > 0 && (
        <ul className="divide-y divide-line rounded-lg border border-line" aria-label="Your rules">
          {list.rules.map((rule) => (
            <RuleLine key={rule.id} rule={rule}>
              <Button
                size="sm"
                variant="danger"
                disabled={busy}
                aria-label={`Revoke ${EFFECT[rule.effect].word} ${describeMatch(rule.match)}`}
                onClick={() => void change(() => call('revokeRule', { params: { id: rule.id } }))}
              >
                Revoke
              </Button>
            </RuleLine>
          ))}
        </ul>
      )}
      {list !== null && list.deployment.length > 0 && (
        <details className="rounded-lg border border-line text-sm">
          <summary className="cursor-pointer px-3 py-2 text-muted pointer-coarse:py-3">
            Deployment rules, for everyone ({list.deployment.length})
          </summary>
          <ul className="divide-y divide-line border-t border-line">
            {list.deployment.map((rule) => (
              <RuleLine key={rule.id} rule={rule} />
            ))}
          </ul>
        </details>
      )}
      {list !== null && <SavingRules known={list.rules.length} onAdded={() => void reload()} />}
      {list !== null && <NewRuleForm mayAllow={list.remember === 'always'} onAdded={() => void reload()} />}
    </div>
  )
}

export function RuleLine(props: { rule: Rule; children?: React.ReactNode }) {
  const { effect, match, createdAt, expiresAt, endsWith } = props.rule
  const ends = endsWith?.promptId === undefined ? 'for one chat' : 'until its message is answered'
  const { word, colour } = EFFECT[effect]
  return (
    <li className="flex items-center gap-3 py-2 pr-2 pl-3">
      <span className="min-w-0 flex-1">
        <span className="block text-sm [overflow-wrap:anywhere]">
          <span className={cn('font-semibold', colour)}>{word}</span>{' '}
          <span className="whitespace-pre-line">{describeMatch(match)}</span>
        </span>
        {createdAt > 0 && (
          <span className="block text-xs text-muted">
            since {formatDate(createdAt)}
            {expiresAt === undefined ? '' : `, until ${formatDate(expiresAt)}`}
            {endsWith === undefined ? '' : `, ${ends}`}
          </span>
        )}
      </span>
      {props.children}
    </li>
  )
}
