/** Notices a peer that is gone without saying so: one ping per interval; no pong until the next one, no peer. */
import type { WebSocket } from 'ws'

export const PING_EVERY_MS = 30_000

/** Terminates `socket` when it stops answering. Ends by itself when the socket closes. */
export function keepAlive(socket: WebSocket, everyMs = PING_EVERY_MS): void {
  let answered = true
  const timer = setInterval(() => {
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
