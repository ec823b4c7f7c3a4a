/** Detects a peer that is gone: one ping per interval, terminated without a pong until the next. */
import type { WebSocket } from 'ws'

const PING_EVERY_MS = 30_000

/**
 * Terminates `socket` when it stops answering. Ends by itself when the socket closes. `isHeld`: it
 * is not read at all just now, so that no answer could be seen.
 */
export function keepAlive(
  socket: WebSocket,
  { everyMs = PING_EVERY_MS, isHeld = () => false }: { everyMs?: number; isHeld?: () => boolean } = {},
): void {
  let answered = true
  const timer = setInterval(() => {
    if (isHeld()) answered = true
    if (!answered) {
      socket.terminate()
      return
    }
    answered = false
    socket.ping()
  }, everyMs)
  timer.unref()
  socket.on('pong', () => {
    answered = true
  })
  socket.once('close', () => clearInterval(timer))
}
