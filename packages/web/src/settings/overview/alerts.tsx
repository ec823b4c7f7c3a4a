/** Alert channels of this Sandlot, raised alerts, and a test of the channels. */
import type { AlertTest, AlertsView } from '@sandlot/shared/admin/alerts'
import { CircleAlert } from 'lucide-react'
import { useState } from 'react'
import { useResource } from '../../state/use-resource.ts'
import { formatDay } from '../../lib/format.ts'
import { call } from '../../net/call.ts'
import { Alert } from '../../ui/alert.tsx'
import { Button } from '../../ui/button.tsx'
import { Part } from '../part.tsx'
import { useAttempt } from '../../lib/use-attempt.ts'

/** Milliseconds between two questions; the service itself looks as often. */
const RENEW_MS = 30_000

interface Alerts {
  view: AlertsView | null
  /** The reason why they could not be loaded. */
  unread: string | null
}

export function useAlerts(): Alerts {
  const { data, problem } = useResource('alerts', (signal) => call('listAlerts', { signal }), {
    everyMs: RENEW_MS,
  })
  return { view: data, unread: problem }
}

export function AlertsPart({ view, unread }: Alerts) {
  const [tested, setTested] = useState<AlertTest | null>(null)
  const { busy, problem, attempt } = useAttempt()
  const goesSomewhere = view !== null && (view.email.length > 0 || view.webhook !== null)
  return (
    <Part title="Alerts" text="Sent when something fails, and when it recovers.">
      {(problem ?? unread) !== null && <Alert>{problem ?? unread}</Alert>}
      {view !== null && <p className="text-sm [overflow-wrap:anywhere]">{waysWords(view)}</p>}
      {view !== null && view.raised.length > 0 && (
        <ul aria-label="Open alerts" className="divide-y divide-line rounded-lg border border-line">
          {view.raised.map(({ kind, title, message, since, problem: late }) => (
            <li key={kind} className="flex items-start gap-2.5 px-3 py-2.5 text-sm">
              <CircleAlert className="mt-0.5 size-4 shrink-0 text-failed" aria-hidden />
              <div className="min-w-0 flex-1 [overflow-wrap:anywhere]">
                <span className="inline-block font-medium first-letter:uppercase">{title}</span>
                <p className="text-muted">{message}</p>
                <p className="text-xs text-muted">
                  Since {formatDay(since, Date.now())}.
                  {goesSomewhere && late !== null && ` Delivery pending. ${late}`}
                </p>
              </div>
            </li>
          ))}
        </ul>
      )}
      {goesSomewhere && (
        <div className="flex flex-wrap items-center gap-3">
          <Button
            disabled={busy}
            onClick={() => void attempt(async () => setTested(await call('testAlerts')))}
          >
            Send test
          </Button>
          <p role="status" className="min-w-0 flex-1 basis-56 text-sm text-muted [overflow-wrap:anywhere]">
            {tested !== null && testWords(tested)}
          </p>
        </div>
      )}
    </Part>
  )
}

function waysWords({ email, webhook }: AlertsView): string {
  const ways = [
    ...(email.length === 0 ? [] : [`by e-mail to ${email.join(', ')}`]),
    ...(webhook === null ? [] : [`to the webhook at ${webhook}`]),
  ]
  return ways.length === 0
    ? 'Shown here only. Set SANDLOT_ALERT_EMAIL or SANDLOT_ALERT_WEBHOOK to send them.'
    : `Sent ${ways.join(', and ')}.`
}

function testWords({ sent }: AlertTest): string {
  const problems = sent.flatMap(({ to, problem }) =>
    problem === null ? [] : [problem.startsWith(to) ? problem : `${to}: ${problem}`],
  )
  if (problems.length === 0) return 'Sent to everyone.'
  return problems.length === sent.length
    ? `Not sent. ${problems.join(' ')}`
    : `Partly sent. ${problems.join(' ')}`
}
