import { type SandboxView, sandboxView } from '@sandlot/shared/workspace/sandbox'
import { formatBytes } from '@sandlot/shared/base/format-bytes'
import { type ReactNode, useRef, useState } from 'react'
import { useResource } from '../state/use-resource.ts'
import { cn } from '../lib/cn.ts'
import { formatCount, formatDay } from '../lib/format.ts'
import { call } from '../net/call.ts'
import { Alert } from '../ui/alert.tsx'
import { Button } from '../ui/button.tsx'
import { ConfirmDialog } from '../ui/confirm-dialog.tsx'
import { Spinner } from '../ui/spinner.tsx'
import { showToast } from '../ui/toasts.tsx'
import { BackgroundJobs } from './background-jobs.tsx'
import { STATE_WORDS, cpuShare, networkWords, stepWords } from '../lib/sandbox-text.ts'

/** Between two polls. One that starts is polled more often. */
const POLL_MS = 3_000
const STARTING_POLL_MS = 700

interface Seen {
  view: SandboxView
  at: number
  /** 0 to 1, of its processors; null: not known before the second poll. */
  cpu: number | null
}

const ASKED = {
  reset: {
    title: 'Reset your sandbox?',
    confirm: 'Reset it',
    about:
      'Ends everything running in it, including background commands and terminals, and empties /tmp. Your workspace is kept.',
    done: 'Sandbox reset. Your workspace is unchanged.',
    act: 'resetSandbox',
  },
  stop: {
    title: 'Stop your sandbox?',
    confirm: 'Stop it',
    about:
      'Ends everything running in it, including background commands and terminals. The next command starts it again. Your workspace is kept.',
    done: 'Sandbox stopped. Your workspace is kept.',
    act: 'stopSandbox',
  },
} as const

/** The person's sandbox: state, commands and use. */
export default function SandboxPanel() {
  const { data: seen, problem, busy, change } = useSandbox()
  const [asked, setAsked] = useState<keyof typeof ASKED | null>(null)
  const question = asked === null ? null : ASKED[asked]
  const view = seen?.view
  return (
    <div className="min-h-0 flex-1 overflow-y-auto" aria-busy={seen === null}>
      <div className="flex flex-col gap-6 px-5 py-4">
        {problem !== null && <Alert>{problem}</Alert>}
        {seen === null && problem === null && (
          <p role="status" className="flex items-center gap-2 text-sm text-muted">
            <Spinner /> Loading…
          </p>
        )}
        {view !== undefined && (
          <>
            <SandboxState view={view} busy={busy} onAsk={setAsked} />
            {view.use !== undefined && <Meters use={view.use} cpus={view.cpus} cpu={seen?.cpu ?? null} />}
            <BackgroundJobs running={view.use?.commands ?? 0} />
            <Facts view={view} />
          </>
        )}
      </div>
      {question !== null && (
        <ConfirmDialog
          title={question.title}
          confirm={question.confirm}
          open
          onCancel={() => setAsked(null)}
          onConfirm={() => {
            setAsked(null)
            void change(async () => {
              await call(question.act)
              showToast(question.done)
            })
          }}
        >
          {question.about}
        </ConfirmDialog>
      )}
    </div>
  )
}

function SandboxState(props: {
  view: SandboxView
  busy: boolean
  onAsk: (what: keyof typeof ASKED) => void
}) {
  const { view, busy } = props
  const isThere = view.state !== 'none' && view.state !== 'stopped'
  return (
    <section aria-labelledby="sandbox-state" className="flex flex-col gap-1">
      <h2 id="sandbox-state" className="flex items-center gap-2 text-base font-semibold">
        <span role="status" className="flex items-center gap-2">
          {view.state === 'starting' ? (
            <Spinner />
          ) : (
            <span
              aria-hidden
              className={cn('size-2 rounded-full', view.state === 'ready' ? 'bg-well' : 'bg-line-strong')}
            />
          )}
          {STATE_WORDS[view.state].title}
        </span>
      </h2>
      <p className="text-sm text-muted">{STATE_WORDS[view.state].about}</p>
      <StartSteps view={view} />
      <div className="mt-2 flex flex-wrap gap-2">
        <Button size="sm" disabled={!isThere || busy} onClick={() => props.onAsk('reset')}>
          Reset…
        </Button>
        <Button size="sm" disabled={!isThere || busy} onClick={() => props.onAsk('stop')}>
          Stop…
        </Button>
        {busy && (
          <p role="status" className="flex items-center gap-2 text-xs text-muted">
            <Spinner className="size-3.5" /> Ending what runs…
          </p>
        )}
      </div>
    </section>
  )
}

/** While it starts, what has happened so far; afterwards how it went, for those who ask. */
function StartSteps({ view }: { view: SandboxView }) {
  const { steps, state, image } = view
  const [first] = steps
  const last = steps.at(-1)
  if (first === undefined || last === undefined || state === 'none' || state === 'stopped') return null
  const took = last.at - first.at
  const lines = (
    <ol
      aria-label="Startup"
      className="mt-1 flex flex-col gap-1 rounded-lg bg-sunken px-3 py-2 font-mono text-xs"
    >
      {steps.map((step) => (
        <li key={`${step.step} ${step.at}`} className="flex gap-3">
          <span className="w-14 shrink-0 text-right text-muted tabular-nums">
            {((step.at - first.at) / 1_000).toFixed(1)} s
          </span>
          <span className="min-w-0 [overflow-wrap:anywhere]">{stepWords(step, image)}</span>
        </li>
      ))}
    </ol>
  )
  if (state === 'starting') return lines
  return (
    <details className="text-xs text-muted">
      <summary className="w-fit cursor-pointer rounded hover:text-ink">
        Started in {took < 1_000 ? 'less than a second' : `${(took / 1_000).toFixed(1)} seconds`},{' '}
        {formatDay(last.at, Date.now())}
      </summary>
      {lines}
    </details>
  )
}

/** Polled while the page is seen. */
function useSandbox() {
  const last = useRef<{ cpuMs: number; at: number } | null>(null)
  const ask = async (signal: AbortSignal): Promise<Seen> => {
    const view = sandboxView.parse(await call('getSandbox', { signal }))
    const at = Date.now()
    const cpuMs = view.use?.cpuMs
    const before = last.current
    const cpu = before === null || cpuMs === undefined ? null : cpuShare(before, { cpuMs, at }, view.cpus)
    last.current = cpuMs === undefined ? null : { cpuMs, at }
    return { view, at, cpu }
  }
  return useResource('sandbox', ask, {
    everyMs: (seen) => (seen?.view.state === 'starting' ? STARTING_POLL_MS : POLL_MS),
  })
}

function Meters(props: { use: NonNullable<SandboxView['use']>; cpus: number; cpu: number | null }) {
  const { use, cpus, cpu } = props
  return (
    <section aria-label="Resources" className="flex flex-col gap-3">
      <Meter
        label="Processors"
        share={cpu}
        text={
          cpu === null
            ? formatCount(cpus, 'processor')
            : `${(cpu * cpus).toFixed(1)} of ${formatCount(cpus, 'processor')}`
        }
      />
      <Meter label="Memory" {...bytesOf(use.memory)} />
      <Meter label="Workspace" {...bytesOf(use.disk)} />
      <Meter label="Temporary files" {...bytesOf(use.scratch)} />
      <Meter
        label="Processes"
        share={shareOf(use.processes)}
        text={`${use.processes.used}${use.processes.limit === undefined ? '' : ` of ${use.processes.limit}`}`}
      />
    </section>
  )
}

interface Amount {
  used: number
  limit?: number | undefined
}

const shareOf = ({ used, limit }: Amount): number | null =>
  limit === undefined || limit === 0 ? null : Math.min(1, used / limit)

function bytesOf(amount: Amount): { share: number | null; text: string } {
  const { used, limit } = amount
  return {
    share: shareOf(amount),
    text: limit === undefined ? formatBytes(used) : `${formatBytes(used)} of ${formatBytes(limit)}`,
  }
}

/** Above this there is not much left. */
const NEARLY_FULL = 0.9

function Meter(props: { label: string; share: number | null; text: string }) {
  const { label, share, text } = props
  return (
    <div className="flex flex-col gap-1">
      <div className="flex justify-between gap-3 text-xs">
        <span className="text-muted">{label}</span>
        <span className="text-ink tabular-nums">{text}</span>
      </div>
      {share !== null && (
        <div
          role="meter"
          aria-label={label}
          aria-valuenow={Math.round(share * 100)}
          aria-valuemin={0}
          aria-valuemax={100}
          aria-valuetext={text}
          className="h-1.5 overflow-hidden rounded-full bg-active"
        >
          <div
            className={cn('h-full rounded-full', share > NEARLY_FULL ? 'bg-failed' : 'bg-accent')}
            style={{ width: `${share * 100}%` }}
          />
        </div>
      )}
    </div>
  )
}

function Facts(props: { view: SandboxView }) {
  const { image, network, allowed } = props.view
  const off = [allowed.terminal ? [] : 'terminals', allowed.exec ? [] : 'commands by POST /api/exec'].flat()
  return (
    <section aria-label="Details" className="flex flex-col gap-3 text-sm">
      <Fact name="Network">{networkWords(network)}</Fact>
      <Fact name="Image">
        <span className="font-mono text-xs [overflow-wrap:anywhere]">{image}</span>
      </Fact>
      {off.length > 0 && (
        <Fact name="Disabled for you">{`Your administrator disabled ${off.join(' and ')}.`}</Fact>
      )}
    </section>
  )
}

function Fact(props: { name: string; children: ReactNode }) {
  return (
    <div>
      <h3 className="text-xs text-muted">{props.name}</h3>
      <p className="text-ink">{props.children}</p>
    </div>
  )
}
