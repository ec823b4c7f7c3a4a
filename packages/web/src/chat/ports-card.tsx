import { Globe, X } from 'lucide-react'
import { useState } from 'react'
import { useDesk } from '../desk/use-desk.ts'
import { Button, IconButton } from '../ui/button.tsx'

/** Says that an app has begun to listen in the person's sandbox, until it is opened or put away. */
export function PortsCard({ ports }: { ports: readonly number[] }) {
  const [seen, setSeen] = useState<readonly number[]>([])
  const fresh = ports.filter((port) => !seen.includes(port))
  // A port that is closed and opened again is new.
  if (seen.some((port) => !ports.includes(port))) setSeen(seen.filter((port) => ports.includes(port)))
  return (
    <div role="status">
      {fresh.length > 0 && (
        <div className="flex items-center gap-2.5 border-b border-line py-1.5 pr-1.5 pl-4 text-sm">
          <Globe className="size-4 shrink-0 text-accent" aria-hidden />
          <p className="min-w-0 flex-1">
            An app listens in your sandbox, on {fresh.length === 1 ? 'port' : 'ports'}{' '}
            <span className="font-mono">{fresh.join(', ')}</span>
          </p>
          <Button
            size="sm"
            onClick={() => {
              setSeen(ports)
              useDesk.getState().open('app')
            }}
          >
            Show it
          </Button>
          <IconButton label="Dismiss" onClick={() => setSeen(ports)}>
            <X aria-hidden />
          </IconButton>
        </div>
      )}
    </div>
  )
}
