import { WifiOff } from 'lucide-react'
import { useNow } from '../lib/use-now.ts'
import type { ConnectionState } from '../net/connection.ts'
import { Spinner } from '../ui/spinner.tsx'
import { useChat, useChatState } from './chat-context.ts'

/** Says that the connection is gone, and that nothing is lost by it. Not shown while a page starts or for a blink. */
export function ConnectionBanner() {
  const { chat } = useChat()
  const connection = useChatState((state) => state.connection)
  const everOpen = useChatState((state) => state.everOpen)
  const shown =
    connection.status === 'offline' ||
    connection.status === 'waiting' ||
    (everOpen && connection.status === 'connecting')
  return (
    <div data-testid="connection-state" data-status={connection.status} role="status">
      {shown && (
        <div className="flex flex-wrap items-center justify-center gap-x-2.5 gap-y-1 border-b border-waiting-line bg-waiting-wash px-4 py-1.5 text-xs text-waiting">
          {connection.status === 'connecting' ? (
            <Spinner className="size-3.5" />
          ) : (
            <WifiOff className="size-3.5" aria-hidden />
          )}
          <Words connection={connection} everOpen={everOpen} />
          {connection.status !== 'connecting' && (
            <button
              type="button"
              onClick={() => chat.wake()}
              className="rounded font-semibold underline underline-offset-2 pointer-coarse:-my-2 pointer-coarse:min-h-11 pointer-coarse:min-w-11"
            >
              Try now
            </button>
          )}
        </div>
      )}
    </div>
  )
}

function Words(props: { connection: ConnectionState; everOpen: boolean }) {
  const { connection } = props
  const now = useNow(connection.status === 'waiting')
  if (connection.status === 'connecting') return <span>Connecting again…</span>
  if (connection.status === 'offline') {
    return <span>You are offline. What runs goes on, and what you write is sent later.</span>
  }
  const seconds =
    connection.status === 'waiting' ? Math.max(1, Math.ceil((connection.retryAt - now) / 1000)) : 1
  const lost = props.everOpen
    ? 'Connection lost. What runs goes on; nothing is lost.'
    : 'Sandlot cannot be reached.'
  return (
    <span>
      {lost} <span aria-hidden>Next try in {seconds} s.</span>
    </span>
  )
}
