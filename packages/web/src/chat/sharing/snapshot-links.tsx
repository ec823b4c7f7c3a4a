/** Links to what a chat is now, for everybody who is signed in. */
import type { Snapshot } from '@sandlot/shared/chat/shares'
import { type SubmitEvent, useState } from 'react'
import { useResource } from '../../state/use-resource.ts'
import { formatDate } from '../../lib/format.ts'
import { call } from '../../net/call.ts'
import { Alert } from '../../ui/alert.tsx'
import { Button } from '../../ui/button.tsx'
import { CopyButton } from '../../ui/copy-button.tsx'
import { INPUT } from '../../ui/field.tsx'
import { END_CHOICES, type EndChoice, endOf } from './ends.ts'

export function SnapshotLinks({ sessionId }: { sessionId: string }) {
  const { data, problem, busy, change } = useResource(sessionId, (signal) =>
    call('listSnapshots', { params: { id: sessionId }, signal }),
  )
  const snapshots = data?.snapshots ?? []
  const make = (terms: { outputs: boolean; expiresAt: number | null }) =>
    void change(async () => {
      await call('makeSnapshot', { params: { id: sessionId }, body: terms })
    })
  const revoke = (id: string) =>
    void change(() => call('removeSnapshot', { params: { id: sessionId, snapshotId: id } }))
  return (
    <section aria-labelledby="snapshots-title" className="flex flex-col gap-3 border-t border-line pt-5">
      <div>
        <h3 id="snapshots-title" className="text-sm font-semibold">
          Snapshot link
        </h3>
        <p className="mt-0.5 text-sm text-muted">
          Anyone signed in with the link can read the chat up to this point, and nothing later.
        </p>
      </div>
      {problem !== null && <Alert>{problem}</Alert>}
      <SnapshotForm busy={busy} onMake={make} />
      {snapshots.length > 0 && (
        <ul aria-label="Links" className="divide-y divide-line rounded-xl border border-line">
          {snapshots.map((snapshot) => (
            <li key={snapshot.id} className="flex items-center gap-1 py-2 pr-2 pl-3">
              <span className="min-w-0 flex-1 text-sm">
                Made {formatDate(snapshot.createdAt)}
                <span className="block text-xs text-muted">{aboutWords(snapshot)}</span>
              </span>
              <CopyButton text={`${location.origin}/snapshots/${snapshot.id}`} what="link" />
              <Button
                size="sm"
                variant="danger"
                disabled={busy}
                aria-label={`Revoke the link made ${formatDate(snapshot.createdAt)}`}
                onClick={() => revoke(snapshot.id)}
              >
                Revoke
              </Button>
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}

function SnapshotForm(props: {
  busy: boolean
  onMake: (terms: { outputs: boolean; expiresAt: number | null }) => void
}) {
  const [outputs, setOutputs] = useState(false)
  const [ends, setEnds] = useState<EndChoice>('never')
  const submit = (event: SubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    props.onMake({ outputs, expiresAt: endOf(ends) })
  }
  return (
    <form onSubmit={submit} className="flex flex-wrap items-center gap-x-4 gap-y-2.5">
      <label className="flex min-h-6 basis-full items-center gap-2.5 text-sm pointer-coarse:min-h-11">
        <input
          type="checkbox"
          className="size-4 accent-accent"
          checked={outputs}
          onChange={(event) => setOutputs(event.target.checked)}
        />
        Include command output
      </label>
      <label className="flex min-w-0 flex-1 items-center gap-2 text-sm">
        Until
        <select className={INPUT} value={ends} onChange={({ target }) => setEnds(target.value as EndChoice)}>
          {Object.entries(END_CHOICES).map(([value, { name }]) => (
            <option key={value} value={value}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <Button type="submit" disabled={props.busy} className="h-10">
        Create link
      </Button>
    </form>
  )
}

function aboutWords({ outputs, expiresAt }: Snapshot): string {
  const what = outputs ? 'With command output' : 'Messages only'
  if (expiresAt === null) return what
  return `${what} · ${expiresAt <= Date.now() ? 'has ended' : `until ${formatDate(expiresAt)}`}`
}
