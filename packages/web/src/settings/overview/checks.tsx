/** Checks of `./sandlot doctor` on the running deployment, started by a button: problems first. */
import type { Finding } from '@sandlot/shared/base/finding'
import { CircleAlert, CircleCheck, CircleQuestionMark } from 'lucide-react'
import { useResource } from '../../state/use-resource.ts'
import { formatCount, formatDay } from '../../lib/format.ts'
import { call } from '../../net/call.ts'
import { Alert } from '../../ui/alert.tsx'
import { Button } from '../../ui/button.tsx'
import { Spinner } from '../../ui/spinner.tsx'
import { Part } from '../part.tsx'

const DOCTOR = './sandlot doctor also tests sandbox isolation.'

export function ChecksPart() {
  const { data, problem, busy, change } = useResource('checks', (signal) => call('getChecks', { signal }))
  const last = data?.last ?? null
  return (
    <Part title="Checks" text="Engine, image, disks, leftovers, audit logs, backup, addresses and sign-in.">
      {problem !== null && <Alert>{problem}</Alert>}
      <div className="flex flex-wrap items-center gap-3">
        <Button disabled={busy} onClick={() => void change(() => call('runChecks'))}>
          {busy && <Spinner />} Check now
        </Button>
        <p role="status" className="min-w-0 flex-1 basis-56 text-sm text-muted">
          {last === null ? DOCTOR : `${summary(last.findings)} Checked at ${formatDay(last.at, Date.now())}.`}
        </p>
      </div>
      {last !== null && <Found findings={last.findings} />}
    </Part>
  )
}

function summary(findings: readonly Finding[]): string {
  const failed = findings.filter(({ state }) => state === 'failed')
  const must = failed.filter(({ group }) => group === 'must').length
  const better = failed.length - must
  if (failed.length === 0) return 'All checks passed.'
  return [
    must === 0 ? 'All required checks passed.' : `${formatCount(must, 'required check')} failed.`,
    ...(better === 0 ? [] : [`${formatCount(better, 'recommendation')}.`]),
  ].join(' ')
}

function Found({ findings }: { findings: readonly Finding[] }) {
  const failed = findings.filter(({ state }) => state === 'failed')
  const rest = findings.filter(({ state }) => state !== 'failed')
  return (
    <>
      {failed.length > 0 && <Lines name="Failed checks" findings={failed} />}
      <details className="rounded-lg border border-line text-sm">
        <summary className="cursor-pointer px-3 py-2.5 text-muted pointer-coarse:py-3.5">
          {formatCount(rest.length, 'other check')}
        </summary>
        <Lines name="Other checks" findings={rest} inside />
        <p className="border-t border-line px-3 py-2 text-xs text-muted">{DOCTOR}</p>
      </details>
    </>
  )
}

function Lines(props: { name: string; findings: readonly Finding[]; inside?: boolean }) {
  return (
    <ul
      aria-label={props.name}
      className={
        props.inside === true
          ? 'divide-y divide-line border-t border-line'
          : 'divide-y divide-line rounded-lg border border-line'
      }
    >
      {props.findings.map((finding) => (
        <li key={`${finding.id} ${finding.message}`} className="flex items-start gap-2.5 px-3 py-2 text-sm">
          <Mark finding={finding} />
          <div className="min-w-0 flex-1 sm:flex sm:gap-3">
            <span className="block font-medium sm:w-56 sm:shrink-0">{finding.name}</span>
            <div className="min-w-0 text-muted [overflow-wrap:anywhere]">
              {capital(finding.message)}
              {finding.state === 'failed' && <p className="mt-0.5 text-ink">→ {finding.fix}</p>}
            </div>
          </div>
        </li>
      ))}
    </ul>
  )
}

/** `v24.21.0` stays as it is. */
function capital(message: string): string {
  return message.replace(/^[a-z](?=[a-z’ ])/, (letter) => letter.toUpperCase())
}

function Mark({ finding: { state, group } }: { finding: Finding }) {
  if (state === 'ok') return <CircleCheck className="mt-0.5 size-4 shrink-0 text-well" aria-label="Well:" />
  if (state === 'unknown')
    return (
      <CircleQuestionMark
        className="mt-0.5 size-4 shrink-0 text-faint"
        aria-label="Not checkable from here:"
      />
    )
  return group === 'must' ? (
    <CircleAlert className="mt-0.5 size-4 shrink-0 text-failed" aria-label="Required, failed:" />
  ) : (
    <CircleAlert className="mt-0.5 size-4 shrink-0 text-waiting" aria-label="Recommended:" />
  )
}
