/** Results of the health checks, and a sentence that agrees with the open alerts. */
import type { Overview } from '@sandlot/shared/admin/overview'
import { CircleAlert, CircleCheck } from 'lucide-react'
import { formatCount } from '../../lib/format.ts'
import { Part } from '../part.tsx'

const PARTS: Readonly<Record<string, string>> = {
  accounts: 'Accounts',
  sessions: 'Chats (reading)',
  agent: 'Agent',
  agents: 'Agents',
  service: 'Service',
  store: 'Chats (writing)',
  model: 'Model',
  'model-key': 'Model key',
  provider: 'Model provider',
  disk: 'Disk',
  backup: 'Backup',
  tools: 'Tools',
  sandbox: 'Sandboxes',
  'sandbox-full': 'Larger sandbox image',
  'sign-in': 'Sign-in',
}

function capital(sentence: string): string {
  return sentence.charAt(0).toUpperCase() + sentence.slice(1)
}

function healthText({ ready, reasons }: Overview['health'], alerts: number): string {
  if (!ready) return 'Sandlot isn’t ready: it can’t answer messages right now.'
  const failing = reasons.filter(({ ok }) => !ok).length
  if (failing > 0) return `Chat works. ${formatCount(failing, 'check fails', 'checks fail')}.`
  return alerts === 0
    ? 'Everything works.'
    : `All checks pass now. ${formatCount(alerts, 'alert is', 'alerts are')} still open, and close after five minutes without a failure.`
}

/** `alerts`: number of open ones, which close some minutes after the problem. */
export function Health({ health, alerts }: { health: Overview['health']; alerts: number }) {
  return (
    <Part title="Health" text={healthText(health, alerts)}>
      <ul aria-label="Health" className="divide-y divide-line rounded-lg border border-line">
        {health.reasons.map(({ part, ok, message }, place) => (
          // Several may be of one part, and they keep their order.
          // oxlint-disable-next-line react/no-array-index-key
          <li key={`${part} ${place}`} className="flex items-start gap-2.5 px-3 py-2 text-sm">
            {ok ? (
              <CircleCheck className="mt-0.5 size-4 shrink-0 text-well" aria-label="Well:" />
            ) : (
              <CircleAlert className="mt-0.5 size-4 shrink-0 text-failed" aria-label="Not well:" />
            )}
            <div className="min-w-0 flex-1 sm:flex sm:gap-3">
              <span className="block font-medium sm:w-56 sm:shrink-0">{PARTS[part] ?? part}</span>
              <span className="block min-w-0 text-muted [overflow-wrap:anywhere]">{capital(message)}</span>
            </div>
          </li>
        ))}
      </ul>
    </Part>
  )
}
