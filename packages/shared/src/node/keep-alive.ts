/** Pings of a WebSocket: ours, which detect a peer that is gone, and the peer's. */
import type { WebSocket } from 'ws'

const PING_EVERY_MS = 30_000

/**
 * One ping per interval; terminates `socket` without an answer until the next. Ends by itself when
 * the socket closes. `isHeld`: it is not read at all just now, so that no answer could be seen.
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
 * Answers the peer's pings in place of `ws`, which queues an answer to each for a peer that reads
 * none of them: while one is on its way, only the newest is answered next.
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
