/** State of this Sandlot: health, who is online, what runs and what waits. Refreshes itself. */
import { formatBytes } from '@sandlot/shared/base/format-bytes'
import { queueText } from '@sandlot/shared/chat/queue-wait'
import type { Overview, RunningPrompt } from '@sandlot/shared/admin/overview'
import { type ReactNode, useRef, useState } from 'react'
import { Link } from 'wouter'
import { useResource } from '../../state/use-resource.ts'
import { cn } from '../../lib/cn.ts'
import { formatDuration } from '../../lib/format.ts'
import { useNow } from '../../lib/use-now.ts'
import { call } from '../../net/call.ts'
import { Alert } from '../../ui/alert.tsx'
import { Button } from '../../ui/button.tsx'
import { ConfirmDialog } from '../../ui/confirm-dialog.tsx'
import { PersonMark } from '../../ui/person-mark.tsx'
import { Spinner } from '../../ui/spinner.tsx'
import { showToast } from '../../ui/toasts.tsx'
import { Part } from '../part.tsx'
import { useAttempt } from '../../lib/use-attempt.ts'
import { AlertsPart, useAlerts } from './alerts.tsx'
import { ChecksPart } from './checks.tsx'
import { Health } from './health.tsx'

/** Milliseconds from one answer to the next question. */
const RENEW_MS = 3_000

export function OverviewSection() {
  const {
    data: view,
    problem,
    show,
  } = useResource('overview', (signal) => call('getOverview', { signal }), { everyMs: RENEW_MS })
  const alerts = useAlerts()
  const [doomed, setDoomed] = useState<RunningPrompt | null>(null)
  const { busy, problem: unstopped, attempt } = useAttempt()
  if (view === null)
    return problem === null ? (
      <p role="status" className="flex items-center gap-2 text-sm text-muted">
        <Spinner /> Loading…
      </p>
    ) : (
      <Alert>{problem}</Alert>
    )
  const nameOf = ({ person }: RunningPrompt) => view.names[person] ?? 'A removed person'
  return (
    <div className="flex flex-col gap-10">
      {problem !== null && <Alert>{`Couldn’t refresh. ${problem}`}</Alert>}
      <Numbers view={view} />
      <Health health={view.health} alerts={alerts.view?.raised.length ?? 0} />
      <ChecksPart />
      <AlertsPart {...alerts} />
      <Part title="Prompts" text="Running and queued work. Its content is private.">
        {unstopped !== null && <Alert>{unstopped}</Alert>}
        <Prompts prompts={view.prompts} nameOf={nameOf} busy={busy} onStop={setDoomed} />
      </Part>
      <PeopleHere online={view.online} />
      <Versions view={view} />
      <ConfirmDialog
        title={doomed === null ? 'Stop it?' : `Stop this prompt of ${nameOf(doomed)}?`}
        confirm="Stop"
        open={doomed !== null}
        onCancel={() => setDoomed(null)}
        onConfirm={() => {
          const prompt = doomed
          setDoomed(null)
          if (prompt === null) return
          void attempt(async () => {
            show(await call('stopPrompt', { params: { id: prompt.promptId } }))
            showToast(`Stopped for ${nameOf(prompt)}.`)
          })
        }}
      >
        They’ll see that an administrator stopped it. Its results so far are kept.
      </ConfirmDialog>
    </div>
  )
}

function PeopleHere({ online }: Pick<Overview, 'online'>) {
  return (
    <Part title="Online now" text="People with Sandlot open.">
      <ul aria-label="Online now" className="flex min-h-8 flex-wrap gap-2">
        {online.map(({ id, name }) => (
          <li
            key={id}
            className="flex items-center gap-2 rounded-full border border-line bg-raised py-1 pr-3 pl-1 text-sm"
          >
            <PersonMark id={id} name={name} />
            <span className="[overflow-wrap:anywhere]">{name}</span>
          </li>
        ))}
      </ul>
    </Part>
  )
}

// ── Numbers

function Numbers({ view }: { view: Overview }) {
  const { prompts, promptLimit, sandboxes, freeBytes, online } = view
  const waiting = prompts?.filter(({ doing }) => doing === 'line').length
  const running = prompts === undefined || waiting === undefined ? undefined : prompts.length - waiting
  return (
    <dl aria-label="Numbers" className="grid grid-cols-2 gap-3 sm:grid-cols-3 lg:grid-cols-5">
      <Figure name="Prompts running" value={running} of={promptLimit} />
      <Figure name="In line" value={waiting} />
      <Figure name="People here" value={online.length} />
      <Figure name="Sandboxes" value={sandboxes?.running} of={sandboxes?.limit} />
      <Figure name="Free disk" value={freeBytes === undefined ? undefined : formatBytes(freeBytes)} />
    </dl>
  )
}

/** `value` undefined: not known now. */
function Figure(props: { name: string; value: number | string | undefined; of?: number | undefined }) {
  return (
    <div className="rounded-lg border border-line bg-raised px-3 py-2.5">
      <dt className="text-xs text-muted">{props.name}</dt>
      <dd className="mt-0.5 text-xl font-semibold tracking-tight tabular-nums">
        {props.value ?? <span className="text-base font-normal text-faint">unknown</span>}
        {props.value !== undefined && props.of !== undefined && (
          <span className="text-sm font-normal text-muted"> of {props.of}</span>
        )}
      </dd>
    </div>
  )
}

// ── Prompts

const DOING = { model: 'Asking the model', person: 'Waiting for a person' } as const

function doingWords({ doing, tools, line }: RunningPrompt): string {
  if (doing === 'line') return line === undefined ? 'In line' : queueText(line)
  if (doing === 'calls') return `Running ${tools.join(', ')}`
  return doing === 'person' && tools.length > 0 ? `${DOING.person}: ${tools.join(', ')}` : DOING[doing]
}

/** Whole seconds: it ticks. */
function agoWords(ms: number): string {
  return `for ${formatDuration(Math.max(1, Math.floor(ms / 1_000)) * 1_000).replace('.0', '')}`
}

function Prompts(props: {
  prompts: readonly RunningPrompt[] | undefined
  nameOf: (prompt: RunningPrompt) => string
  busy: boolean
  onStop: (prompt: RunningPrompt) => void
}) {
  const { prompts, nameOf } = props
  const now = useNow(true)
  // Keeps its height: rows below do not move when one ends.
  const most = useRef(1)
  most.current = Math.max(most.current, prompts?.length ?? 0)
  const minHeight = `${most.current * 3.5}rem`
  if (prompts === undefined) return <p className="text-sm text-muted">Unknown: the agent isn’t responding.</p>
  return (
    <div style={{ minHeight }}>
      {prompts.length === 0 ? (
        <p className="text-sm text-muted">Nothing is running.</p>
      ) : (
        <ul aria-label="Prompts" className="divide-y divide-line rounded-lg border border-line">
          {prompts.map((prompt) => (
            <PromptRow
              key={prompt.promptId}
              prompt={prompt}
              owner={nameOf(prompt)}
              now={now}
              busy={props.busy}
              onStop={props.onStop}
            />
          ))}
        </ul>
      )}
    </div>
  )
}

function PromptRow(props: {
  prompt: RunningPrompt
  owner: string
  now: number
  busy: boolean
  onStop: (prompt: RunningPrompt) => void
}) {
  const { prompt, owner, now } = props
  const { model, startedAt, doing, sessionId, title } = prompt
  return (
    <li className="flex min-h-14 items-center gap-3 py-2 pr-2 pl-3 text-sm">
      <span
        className={cn(
          'size-1.5 shrink-0 rounded-full',
          doing === 'line' || doing === 'person' ? 'bg-waiting' : 'bg-accent',
        )}
        aria-hidden
      />
      <div className="min-w-0 flex-1">
        <p className="[overflow-wrap:anywhere]">
          <span className="font-medium">{owner}</span>
          <span className="text-muted"> · {model}</span>
        </p>
        <p className="text-xs text-muted tabular-nums [overflow-wrap:anywhere]">
          {doingWords(prompt)} · {agoWords(now - startedAt)}
          {sessionId !== undefined && (
            <>
              {' · '}
              <Link
                href={`/s/${sessionId}`}
                className="inline-flex items-center text-accent underline underline-offset-2 pointer-coarse:h-11"
              >
                {title ?? 'Your chat'}
              </Link>
            </>
          )}
        </p>
      </div>
      <Button
        size="sm"
        variant="danger"
        disabled={props.busy}
        aria-label={`Stop what runs for ${owner}`}
        onClick={() => props.onStop(prompt)}
      >
        Stop
      </Button>
    </li>
  )
}

// ── Versions

function Versions({ view }: { view: Overview }) {
  const { version, node, sandboxes } = view
  return (
    <Part title="Versions">
      <dl className="divide-y divide-line rounded-lg border border-line text-sm">
        <Fact name="Sandlot">{version ?? 'unknown'}</Fact>
        <Fact name="Node">{node}</Fact>
        <Fact name="Sandbox engine">{sandboxes?.engine ?? 'unknown'}</Fact>
        <Fact name="Sandbox image">{sandboxes?.image ?? 'unknown'}</Fact>
      </dl>
    </Part>
  )
}

function Fact(props: { name: string; children: ReactNode }) {
  return (
    <div className="flex flex-wrap gap-x-3 px-3 py-2">
      <dt className="w-full shrink-0 text-muted sm:w-56">{props.name}</dt>
      <dd className="min-w-0 [overflow-wrap:anywhere]">{props.children}</dd>
    </div>
  )
}
