/** WebSocket pings: ours, which detect dead peers, and the peer's. */
import type { WebSocket } from 'ws'

const PING_EVERY_MS = 30_000

/**
 * Pings once per interval; terminates `socket` if no answer arrives until the next. Stops when the
 * socket closes. `isHeld`: reading is paused, so an answer could not be seen.
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

/**
 * Answers the peer's pings instead of `ws`, which queues an answer to each even if the peer reads
 * none: while one is being sent, only the newest is answered next.
 */
export function answerPings(socket: WebSocket): void {
  let newest: Buffer | undefined
  let isSending = false
  const answer = (data: Buffer): void => {
    isSending = true
    socket.pong(data, false, () => {
      isSending = false
      const next = newest
      newest = undefined
      if (next !== undefined && socket.readyState === socket.OPEN) answer(next)
    })
  }
  socket.on('ping', (data: Buffer) => {
    if (isSending) newest = data
    else answer(data)
  })
}
