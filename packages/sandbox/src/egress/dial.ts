import { connect, type Socket } from 'node:net'

import { EgressRefused } from './refusal.ts'

const MOST_TRIED = 4
/** One write at a time: a server that does not read must not leave us a queue of single bytes. */
const ONE_WRITE = { writableHighWaterMark: 1 }

export interface Dialled {
  socket: Socket
  address: string
}

/**
 * Connects to the first of these addresses that accepts. Addresses, not names: nothing is resolved
 * again. Rejects with `unreachable`, or with the signal's reason.
 */
export async function dial(
  addresses: readonly string[],
  port: number,
  within: { signal: AbortSignal; ms: number },
): Promise<Dialled> {
  const tried = addresses.slice(0, MOST_TRIED)
  let cause: unknown
  for (const address of tried) {
    try {
      return { socket: await dialOne(address, port, within.signal, within.ms / tried.length), address }
    } catch (error) {
      within.signal.throwIfAborted()
      cause = error
    }
  }
  throw new EgressRefused('unreachable', 'the server cannot be reached.', { cause })
}

function dialOne(host: string, port: number, signal: AbortSignal, ms: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({
      ...ONE_WRITE,
      host,
      port,
      allowHalfOpen: true,
      autoSelectFamily: false,
      noDelay: true,
    })
    const fail = (error: unknown): void => {
      settle()
      socket.destroy()
      reject(error)
    }
    const stop = (): void => fail(signal.reason)
    const timer = setTimeout(() => fail(new Error(`no answer within ${ms} ms`)), ms)
    const settle = (): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', stop)
      socket.off('error', fail)
      // Later errors surface in reads and writes; one without a listener would end the process.
      socket.on('error', () => {})
    }
    signal.addEventListener('abort', stop, { once: true })
    socket.once('error', fail)
    socket.once('connect', () => {
      settle()
      resolve(socket)
    })
    if (signal.aborted) stop()
  })
}
