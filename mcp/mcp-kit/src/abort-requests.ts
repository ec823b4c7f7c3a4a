/**
 * Ends the HTTP requests of a client library that takes no signal. Node tells of every request that
 * it makes, in the asynchronous context of the caller, which holds the signal.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { subscribe } from 'node:diagnostics_channel'
import type { ClientRequest } from 'node:http'

const asking = new AsyncLocalStorage<AbortSignal>()

subscribe('http.client.request.created', (message) => {
  const signal = asking.getStore()
  if (signal === undefined) return
  const { request } = message as { request: ClientRequest }
  const end = (): void => void request.destroy(new Error('the request was ended', { cause: signal.reason }))
  if (signal.aborted) return end()
  signal.addEventListener('abort', end, { once: true })
  request.once('close', () => signal.removeEventListener('abort', end))
})

/** Run `work`; what it asks by `node:http` or `node:https` is cut off when the signal aborts. */
export function withSignal<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  return asking.run(signal, work)
}
