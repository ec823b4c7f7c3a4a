/** Listening ports of the person's sandbox, each to open in its own tab. */
import { ExternalLink, Globe } from 'lucide-react'
import { type FormEvent, useState } from 'react'
import { useResource } from '../state/use-resource.ts'
import { call } from '../net/call.ts'
import { Alert, Hint } from '../ui/alert.tsx'
import { Button } from '../ui/button.tsx'
import { EmptyPlace } from '../ui/empty-place.tsx'
import { Spinner } from '../ui/spinner.tsx'

/** Milliseconds between two polls while the panel is seen. */
const POLL_MS = 3_000
const OPEN =
  'inline-flex min-h-8 shrink-0 items-center gap-1.5 rounded-lg border border-line-strong px-2.5 text-sm hover:bg-hover pointer-coarse:min-h-11'

const addressOf = (port: number): string => `/api/ports/${port}/open`

export default function AppPanel() {
  const { data: known, problem } = useResource('ports', (signal) => call('listPorts', { signal }), {
    everyMs: POLL_MS,
  })
  if (problem !== null)
    return (
      <div className="p-4">
        <Alert>{problem}</Alert>
      </div>
    )
  if (known === null)
    return (
      <p role="status" className="flex items-center gap-2 px-5 py-4 text-sm text-muted">
        <Spinner /> Loading…
      </p>
    )
  return (
    <div className="flex min-h-0 flex-1 flex-col gap-4 overflow-y-auto px-4 py-4">
      {known.off !== undefined && <Hint>{known.off}</Hint>}
      {known.ports.length === 0 ? (
        <Nothing awake={known.awake} />
      ) : (
        <ul className="flex flex-col">
          {known.ports.map((port) => (
            <li key={port} className="flex items-center gap-3 border-b border-line py-2.5 last:border-b-0">
              <Globe className="size-4 shrink-0 text-faint" aria-hidden />
              <span className="min-w-0 flex-1 truncate text-sm">
                Port <span className="font-mono">{port}</span>
              </span>
              {known.off === undefined && (
                <a href={addressOf(port)} target="_blank" rel="noopener" className={OPEN}>
                  Open <span className="sr-only">port {port} in a new tab</span>
                  <ExternalLink className="size-3.5" aria-hidden />
                </a>
              )}
            </li>
          ))}
        </ul>
      )}
      {known.awake && known.off === undefined && <OtherPort />}
    </div>
  )
}

function Nothing(props: { awake: boolean }) {
  return (
    <EmptyPlace icon={Globe} title="No app is running">
      <p>
        {props.awake
          ? 'Ask the agent to start one, such as a web server on port 8000. It appears here, visible only to you.'
          : 'Your sandbox is stopped. It starts with the next command; running apps appear here.'}
      </p>
    </EmptyPlace>
  )
}

/** For what is not in the list: it listens only for a moment, or was not found. */
function OtherPort() {
  const [port, setPort] = useState('')
  const open = (event: FormEvent) => {
    event.preventDefault()
    window.open(addressOf(Number(port)), '_blank', 'noopener')
  }
  return (
    <form onSubmit={open} className="mt-auto flex items-center gap-2 border-t border-line pt-3">
      <label className="flex min-w-0 flex-1 items-center gap-2 text-sm text-muted">
        Another port
        <input
          type="number"
          min={1}
          max={65_535}
          required
          inputMode="numeric"
          value={port}
          onChange={(event) => setPort(event.target.value)}
          className="h-8 w-24 rounded-lg border border-line-strong bg-canvas px-2 font-mono text-sm text-ink pointer-coarse:h-11"
        />
      </label>
      <Button type="submit" size="sm">
        Open
      </Button>
    </form>
  )
}
