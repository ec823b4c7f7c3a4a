/**
 * A person's byte stream: a browser's WebSocket joined to one of the agent, at the pace of the
 * slower one. It ends with the sign-in, the key or the account that it was opened by.
 */
import type { WebSocket } from 'ws'
import type { Caller } from '../auth/caller.ts'
import type { UserTraffic } from '../auth/user-traffic.ts'
import { answerPings, keepAlive } from '@sandlot/shared/node/keep-alive'
import type { Sockets } from './sockets.ts'

/** Bytes on their way to a peer above which its sender waits, and below which it resumes. */
const MOST_WAITING_BYTES = 1024 * 1024
const FEW_WAITING_BYTES = 256 * 1024

/** Close codes that a peer may be sent. */
const isSendable = (code: number): boolean =>
  (code >= 1000 && code <= 1014 && ![1004, 1005, 1006].includes(code)) || (code >= 3000 && code <= 4999)

/** Time for an end to read data sent before the close, in milliseconds. */
const CLOSE_GRACE_MS = 5_000

/** `agent` is paused, as it was opened; it is read from here on. */
export function relayBytes(
  { browser, agent }: { browser: WebSocket; agent: WebSocket },
  { caller, sockets, traffic }: { caller: Caller; sockets: Sockets; traffic: UserTraffic },
): void {
  const take = (bytes: number): number => traffic.take(caller.account.id, bytes)
  pipeSocket(browser, agent, take)
  pipeSocket(agent, browser, take)
  // While the agent takes nothing, the browser's answers wait behind its bytes.
  keepAlive(browser, { isHeld: () => browser.isPaused })
  answerPings(browser)
  const leave = sockets.add({
    caller,
    // Frames are for chats.
    send: () => undefined,
    close(code, reason) {
      browser.close(code, reason)
      setTimeout(() => browser.terminate(), CLOSE_GRACE_MS).unref()
    },
  })
  browser.once('close', leave)
  agent.resume()
}

/**
 * Everything that `from` receives goes to `to`, at the pace at which `to` takes it and `take` lets
 * it, and its end too.
 */
function pipeSocket(from: WebSocket, to: WebSocket, take: (bytes: number) => number): void {
  let held: NodeJS.Timeout | undefined
  const goOn = (): void => {
    if (held === undefined && from.isPaused && to.bufferedAmount <= FEW_WAITING_BYTES) from.resume()
  }
  from.on('message', (data: Buffer, isBinary) => {
    if (to.readyState !== to.OPEN) return
    to.send(data, { binary: isBinary }, goOn)
    const waitMs = take(data.length)
    if (waitMs > 0) {
      clearTimeout(held)
      held = setTimeout(() => {
        held = undefined
        goOn()
      }, waitMs)
    }
    if (held !== undefined || to.bufferedAmount > MOST_WAITING_BYTES) from.pause()
  })
  from.once('close', () => clearTimeout(held))
  // Always followed by `close`.
  from.on('error', () => from.terminate())
  from.once('close', (code, reason) => {
    if (to.readyState === to.OPEN) to.close(isSendable(code) ? code : 1001, reason)
    else to.terminate()
    // A peer that does not answer the close is not waited for.
    setTimeout(() => to.terminate(), CLOSE_GRACE_MS).unref()
  })
}
