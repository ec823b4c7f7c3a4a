/**
 * Aborts HTTP requests of a client library that takes no signal: Node publishes every request, in
 * the asynchronous context of the caller, which has the signal.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { subscribe } from 'node:diagnostics_channel'
import type { ClientRequest } from 'node:http'

const signals = new AsyncLocalStorage<AbortSignal>()

subscribe('http.client.request.created', (message) => {
  const signal = signals.getStore()
  if (signal === undefined) return
  const { request } = message as { request: ClientRequest }
  const end = (): void => void request.destroy(new Error('the request was aborted', { cause: signal.reason }))
  if (signal.aborted) return end()
  signal.addEventListener('abort', end, { once: true })
  request.once('close', () => signal.removeEventListener('abort', end))
})

/** Runs `work`. Its requests through `node:http` and `node:https` end with the signal. */
export function withSignal<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  return signals.run(signal, work)
}
