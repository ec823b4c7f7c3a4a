import { WebSocket } from 'ws'

/** Resolves when it is closed. Not `events.once`, which rejects where an error comes before the close: it has gone either way. */
export async function whenClosed(socket: WebSocket): Promise<void> {
  if (socket.readyState === WebSocket.CLOSED) return
  await new Promise<void>((resolve) => void socket.once('close', () => resolve()))
}
