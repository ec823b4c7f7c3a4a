import type { BackgroundJob } from '@sandlot/shared/workspace/sandbox'
import { useState } from 'react'
import { Link } from 'wouter'
import { useResource } from '../state/use-resource.ts'
import { formatDuration } from '../lib/format.ts'
import { call } from '../net/call.ts'
import { useAttempt } from '../lib/use-attempt.ts'
import { Alert } from '../ui/alert.tsx'
import { Button } from '../ui/button.tsx'
import { Revealed } from '../ui/revealed.tsx'
import { Spinner } from '../ui/spinner.tsx'

const POLL_MS = 5_000

/** Background commands of all chats. `running`: the last known number of commands of any kind. */
export function BackgroundJobs(props: { running: number }) {
  const { running } = props
  const {
    data: jobs,
    problem,
    reload,
  } = useResource(
    String(running),
    async (signal) => (running === 0 ? [] : (await call('listJobs', { signal })).jobs),
    { keep: true, everyMs: () => (running === 0 ? undefined : POLL_MS) },
  )
  return (
    <section aria-labelledby="background-jobs" className="flex flex-col gap-2">
      <h2 id="background-jobs" className="text-sm font-semibold">
        In the background
      </h2>
      {problem !== null && <Alert>{problem}</Alert>}
      {jobs === null && problem === null && (
        <p role="status" className="flex items-center gap-2 text-sm text-muted">
          <Spinner /> Loading…
        </p>
      )}
      {jobs?.length === 0 && (
        <p className="text-sm text-muted">
          Nothing is running in the background. Servers and long jobs appear here.
        </p>
      )}
      {jobs !== null && jobs.length > 0 && (
        <ul className="divide-y divide-line rounded-xl border border-line">
          {jobs.map((job) => (
            <Job key={job.id} job={job} onEnded={() => void reload()} />
          ))}
        </ul>
      )}
    </section>
  )
}

function Job(props: { job: BackgroundJob; onEnded: () => void }) {
  const { id, line, startedAt, session, by } = props.job
  const [output, setOutput] = useState<string | null>(null)
  const { busy, problem, attempt } = useAttempt()
  const toggle = () =>
    output === null
      ? attempt(async () => setOutput((await call('getJobOutput', { params: { id } })).text))
      : setOutput(null)
  return (
    <li className="flex flex-col gap-2 px-3 py-2.5">
      <p className="font-mono text-xs text-ink [overflow-wrap:anywhere]">
        <Revealed text={line} />
      </p>
      <p className="text-xs text-muted">
        {formatDuration(Date.now() - startedAt)}
        {by === undefined ? '' : `, for ${by.name}`}, from{' '}
        <Link href={`/s/${session.id}`} className="text-accent underline-offset-2 hover:underline">
          {session.title ?? 'New chat'}
        </Link>
      </p>
      <div className="flex flex-wrap gap-2">
        <Button size="sm" aria-expanded={output !== null} onClick={() => void toggle()}>
          {output === null ? 'Show output' : 'Hide output'}
        </Button>
        <Button
          size="sm"
          variant="danger"
          disabled={busy}
          onClick={() =>
            void attempt(async () => {
              await call('endJob', { params: { id } })
              props.onEnded()
            })
          }
        >
          Stop
        </Button>
      </div>
      {problem !== null && <Alert>{problem}</Alert>}
      {output !== null && (
        <pre
          tabIndex={0}
          aria-label="Latest output"
          className="max-h-60 overflow-auto rounded-lg bg-sunken p-2.5 font-mono text-xs whitespace-pre-wrap [overflow-wrap:anywhere]"
        >
          {output === '' ? 'No output yet.' : <Revealed text={output} />}
        </pre>
      )}
    </li>
  )
}
