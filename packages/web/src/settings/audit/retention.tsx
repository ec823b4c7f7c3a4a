/** Retention times for administrators, with a preview of what would be removed. */
import { formatBytes } from '@sandlot/shared/base/format-bytes'
import {
  LEAST_DAYS,
  RETENTION_KINDS,
  type RetentionKind,
  type RetentionPreview,
  type RetentionView,
  retentionPreview,
  retentionView,
} from '@sandlot/shared/admin/retention'
import { useId, useState } from 'react'
import { useResource } from '../../state/use-resource.ts'
import { formatCount, formatDate } from '../../lib/format.ts'
import { call } from '../../net/call.ts'
import { Alert } from '../../ui/alert.tsx'
import { Button } from '../../ui/button.tsx'
import { ConfirmDialog } from '../../ui/confirm-dialog.tsx'
import { INPUT } from '../../ui/field.tsx'
import { Spinner } from '../../ui/spinner.tsx'
import { showToast } from '../../ui/toasts.tsx'
import { Setting } from '../people/setting-fields.tsx'
import { useAttempt } from '../../lib/use-attempt.ts'

const WORDS: Record<RetentionKind, { title: string; hint: string; one: string; start: number }> = {
  chats: {
    title: 'Chats',
    hint: 'Chats inactive for this long. Running, open, pinned and recently shared chats are kept.',
    one: 'chat',
    start: 365,
  },
  outputs: {
    title: 'Outputs of tools',
    hint: 'Output of commands that ended this long ago, also in active chats. The part the model saw stays in the chat.',
    one: 'chat',
    start: 90,
  },
  images: {
    title: 'Images',
    hint: 'Images this old, also in active chats. A placeholder takes their place.',
    one: 'image',
    start: 180,
  },
  audit: {
    title: 'Audit log',
    hint: 'Audit entries of both processes. The hash of the last removed entry is kept, so the rest can still be verified.',
    one: 'line',
    start: 365,
  },
  usage: {
    title: 'Usage and costs',
    hint: 'Usage records and daily totals. Monthly limits need at least 62 days.',
    one: 'record',
    start: 365,
  },
}

export function Retention() {
  const {
    data: view,
    problem,
    show,
  } = useResource('retention', async (signal) => retentionView.parse(await call('getRetention', { signal })))
  if (problem !== null && view === null) return <Alert>{problem}</Alert>
  return view === null ? <Spinner /> : <RetentionForm key={view.revision} view={view} onSaved={show} />
}

function RetentionForm(props: { view: RetentionView; onSaved: (view: RetentionView) => void }) {
  const { view, onSaved } = props
  const [days, setDays] = useState(view.days)
  const [preview, setPreview] = useState<RetentionPreview | null>(null)
  const [asking, setAsking] = useState(false)
  const { busy, problem, attempt } = useAttempt()
  const changed = RETENTION_KINDS.some((kind) => days[kind] !== view.days[kind])
  const shorter = RETENTION_KINDS.some((kind) => (days[kind] ?? Infinity) < (view.days[kind] ?? Infinity))
  const change = (kind: RetentionKind, value: number | null) => {
    setDays({ ...days, [kind]: value })
    setPreview(null)
  }
  const showPreview = () =>
    attempt(async () =>
      setPreview(retentionPreview.parse(await call('previewRetention', { body: { days } }))),
    )
  const save = () =>
    attempt(async () => {
      setAsking(false)
      const now = retentionView.parse(await call('putRetention', { body: { days, revision: view.revision } }))
      showToast('Retention saved.')
      onSaved(now)
    })
  return (
    <form
      aria-label="Retention"
      className="flex flex-col gap-6"
      onSubmit={(event) => {
        event.preventDefault()
        if (!shorter) return void save()
        // Removal is final: it is shown first.
        void showPreview().then(() => setAsking(true))
      }}
    >
      {problem !== null && <Alert>{problem}</Alert>}
      <Limits days={days} onChange={change} />
      <div aria-live="polite">{preview !== null && <Preview preview={preview} />}</div>
      <div className="flex flex-wrap items-center gap-2">
        <Button type="submit" variant="primary" disabled={busy || !changed}>
          {busy && <Spinner />} Save
        </Button>
        <Button disabled={busy} onClick={() => void showPreview()}>
          Preview
        </Button>
      </div>
      <LastRun view={view} />
      <ConfirmDialog
        title="Remove older data?"
        confirm="Save and remove"
        open={asking && preview !== null}
        onCancel={() => setAsking(false)}
        onConfirm={() => void save()}
      >
        {preview !== null && `${sentenceOf(preview)} They’re permanently removed within a day.`}
      </ConfirmDialog>
    </form>
  )
}

function Limits(props: {
  days: RetentionView['days']
  onChange: (kind: RetentionKind, days: number | null) => void
}) {
  const { days, onChange } = props
  return (
    <div className="divide-y divide-line rounded-lg border border-line">
      {RETENTION_KINDS.map((kind) => {
        const { title, hint, start } = WORDS[kind]
        const value = days[kind]
        return (
          <Setting
            key={kind}
            title={title}
            hint={hint}
            on={value !== null}
            onSet={(on) => onChange(kind, on ? start : null)}
          >
            <DaysField kind={kind} value={value ?? start} onChange={(next) => onChange(kind, next)} />
          </Setting>
        )
      })}
    </div>
  )
}

function DaysField(props: { kind: RetentionKind; value: number; onChange: (days: number) => void }) {
  const { kind, value, onChange } = props
  const id = useId()
  const least = LEAST_DAYS[kind]
  return (
    <div className="flex items-center gap-2 text-sm">
      <label htmlFor={id}>Kept for</label>
      <input
        id={id}
        type="number"
        required
        min={least}
        max={3_650}
        step={1}
        className={`${INPUT} max-w-28`}
        value={Number.isNaN(value) ? '' : value}
        onChange={({ target }) => onChange(target.valueAsNumber)}
      />
      <span>days{least > 1 && `, at least ${least}`}</span>
    </div>
  )
}

function Preview(props: { preview: RetentionPreview }) {
  const { kinds } = props.preview
  if (kinds.length === 0) return <p className="text-sm text-muted">Everything is kept forever.</p>
  return (
    <ul aria-label="Would be removed" className="divide-y divide-line rounded-lg border border-line text-sm">
      {kinds.map(({ kind, count, bytes, oldest, open }) => (
        <li key={kind} className="px-3 py-2">
          <span className="font-medium">{WORDS[kind].title}: </span>
          {count === 0
            ? 'nothing to remove.'
            : `${formatCount(count, WORDS[kind].one)}, about ${formatBytes(bytes)}${oldest === null ? '' : `, the oldest of ${formatDate(oldest)}`}.`}
          {open > 0 && (
            <span className="block text-xs text-muted">
              {formatCount(open, 'chat')} more {open === 1 ? 'is' : 'are'} open or running now, and{' '}
              {open === 1 ? 'stays' : 'stay'} until closed.
            </span>
          )}
        </li>
      ))}
    </ul>
  )
}

function sentenceOf({ kinds }: RetentionPreview): string {
  const going = kinds.filter(({ count }) => count > 0)
  if (going.length === 0) return 'Nothing is old enough yet. Data is removed as it ages.'
  const words = going.map(({ kind, count, bytes }) =>
    kind === 'outputs'
      ? `the outputs of ${formatCount(count, 'chat')} (${formatBytes(bytes)})`
      : `${formatCount(count, kind === 'audit' ? 'line of the audit log' : kind === 'usage' ? 'record of usage' : WORDS[kind].one, kind === 'audit' ? 'lines of the audit log' : kind === 'usage' ? 'records of usage' : undefined)} (${formatBytes(bytes)})`,
  )
  return `${words.join(', ')}.`.replace(/^./, (first) => first.toUpperCase())
}

function LastRun(props: { view: RetentionView }) {
  const { last, nextAt, days } = props.view
  const isOff = RETENTION_KINDS.every((kind) => days[kind] === null)
  if (isOff) return <p className="text-xs text-muted">Nothing is removed: everything is kept forever.</p>
  const at = (time: number) =>
    new Date(time).toLocaleString('en-GB', { dateStyle: 'medium', timeStyle: 'short' })
  const removed = Object.values(last?.removed ?? {}).reduce((sum, count) => sum + count, 0)
  return (
    <p className="text-xs text-muted">
      Applied daily. No restart needed.{' '}
      {last !== null &&
        `Last on ${at(last.at)}: ${removed === 0 ? 'nothing was old enough' : `${removed.toLocaleString('en')} removed`}. `}
      Next about {at(nextAt)}.
    </p>
  )
}
