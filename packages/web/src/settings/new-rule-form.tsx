/** A rule that one writes oneself, and what it would have answered to what has been. */
import type { RuleEffect, RuleMatch, Verdict } from '@sandlot/shared/chat/rules'
import type { RulePreview } from '@sandlot/shared/account/rules-api'
import { type SubmitEvent, useId, useState } from 'react'
import { formatCount } from '../lib/format.ts'
import { call } from '../net/call.ts'
import { Alert } from '../ui/alert.tsx'
import { Button } from '../ui/button.tsx'
import { INPUT } from '../ui/field.tsx'
import { useAttempt } from '../lib/use-attempt.ts'

type Kind = 'shell' | 'file' | 'host' | 'tool'

const KINDS: Record<Kind, { name: string; example: string }> = {
  shell: { name: 'commands', example: 'npm test *' },
  file: { name: 'files', example: 'secrets/**' },
  host: { name: 'a host', example: '*.example.org' },
  tool: { name: 'a tool', example: 'flights-mcp::*' },
}
const EFFECTS: Record<RuleEffect, string> = { allow: 'Allow', ask: 'Always ask about', deny: 'Never run' }
const SELECT = `${INPUT} w-auto min-w-0 flex-1 pr-2`
const MOST_SHOWN = 5

export function NewRuleForm(props: {
  mayAllow: boolean
  /** Chosen at first. Default: allow, if that may be. */
  first?: RuleEffect
  /** Default: as one's own. */
  action?: 'addRule' | 'addEverybodysRule'
  onAdded: () => void
}) {
  const [effect, setEffect] = useState<RuleEffect>(props.first ?? (props.mayAllow ? 'allow' : 'deny'))
  const [kind, setKind] = useState<Kind>('shell')
  const [pattern, setPattern] = useState('')
  const [shown, setShown] = useState<RulePreview | null>(null)
  const { busy, problem, attempt } = useAttempt()
  const rule = { effect, match: matchOf(kind, pattern.trim()) }
  const add = (event: SubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    void attempt(async () => {
      await call(props.action ?? 'addRule', { body: rule })
      setPattern('')
      setShown(null)
      props.onAdded()
    })
  }
  const changed = (change: () => void) => {
    change()
    setShown(null)
  }
  return (
    <form onSubmit={add} aria-label="New rule" className="flex flex-col gap-2">
      {problem !== null && <Alert>{problem}</Alert>}
      <RuleSubject
        effect={effect}
        kind={kind}
        mayAllow={props.mayAllow}
        onEffect={(next) => changed(() => setEffect(next))}
        onKind={(next) => changed(() => setKind(next))}
      />
      <div className="flex gap-2 max-sm:flex-wrap">
        <PatternField kind={kind} pattern={pattern} onChange={(next) => changed(() => setPattern(next))} />
        <Button
          className="h-10 pointer-coarse:h-11 max-sm:flex-1"
          disabled={busy || pattern.trim() === ''}
          onClick={() => void attempt(async () => setShown(await call('previewRule', { body: rule })))}
        >
          Preview
        </Button>
        <Button
          type="submit"
          variant="primary"
          className="h-10 pointer-coarse:h-11 max-sm:flex-1"
          disabled={busy || pattern.trim() === ''}
        >
          Add rule
        </Button>
      </div>
      {shown !== null && <Preview shown={shown} />}
    </form>
  )
}

function RuleSubject(props: {
  effect: RuleEffect
  kind: Kind
  mayAllow: boolean
  onEffect: (effect: RuleEffect) => void
  onKind: (kind: Kind) => void
}) {
  return (
    <div className="flex gap-2">
      <select
        aria-label="What the rule does"
        className={SELECT}
        value={props.effect}
        onChange={({ target }) => props.onEffect(target.value as RuleEffect)}
      >
        {Object.entries(EFFECTS).map(([value, name]) => (
          <option key={value} value={value} disabled={value === 'allow' && !props.mayAllow}>
            {name}
          </option>
        ))}
      </select>
      <select
        aria-label="What the rule is about"
        className={SELECT}
        value={props.kind}
        onChange={({ target }) => props.onKind(target.value as Kind)}
      >
        {Object.entries(KINDS).map(([value, { name }]) => (
          <option key={value} value={value}>
            {name}
          </option>
        ))}
      </select>
    </div>
  )
}

function PatternField(props: { kind: Kind; pattern: string; onChange: (pattern: string) => void }) {
  const id = useId()
  return (
    <>
      <label htmlFor={id} className="sr-only">
        Pattern
      </label>
      <input
        id={id}
        className={`${INPUT} font-mono max-sm:basis-full`}
        placeholder={KINDS[props.kind].example}
        value={props.pattern}
        maxLength={2000}
        autoCapitalize="off"
        autoCorrect="off"
        spellCheck={false}
        onChange={({ target }) => props.onChange(target.value)}
      />
    </>
  )
}

function matchOf(kind: Kind, pattern: string): RuleMatch {
  switch (kind) {
    case 'shell':
      return { shell: pattern }
    case 'file':
      return { file: pattern }
    case 'host':
      return { host: pattern }
    case 'tool':
      return { tool: pattern }
  }
}

const VERDICT: Record<Verdict, string> = { allow: 'runs', ask: 'asks', deny: 'is denied', block: 'is denied' }

export function Preview(props: { shown: RulePreview }) {
  const { looked, changed, changedCount } = props.shown
  return (
    <div role="status" className="rounded-lg border border-line bg-sunken px-3 py-2 text-sm text-muted">
      <p>
        {changedCount === 0
          ? `Wouldn’t have changed any of your last ${formatCount(looked, 'call')}.`
          : `Would have changed ${formatCount(changedCount, 'call')} of your last ${looked.toLocaleString('en')}:`}
      </p>
      <ul className="mt-1 flex flex-col gap-1 empty:hidden">
        {changed.slice(0, MOST_SHOWN).map((call) => (
          <li key={`${call.sessionId}/${call.toolCallId}`} className="flex gap-2">
            <span className="min-w-0 flex-1 truncate text-ink">{call.title}</span>
            <span className="shrink-0">
              {VERDICT[call.before]} → {VERDICT[call.after]}
            </span>
          </li>
        ))}
        {changedCount > MOST_SHOWN && <li>and {formatCount(changedCount - MOST_SHOWN, 'more', 'more')}</li>}
      </ul>
    </div>
  )
}
