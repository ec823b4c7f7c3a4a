/**
 * The policy for errors that belong to one connection: they end it, and nothing else. Everything
 * that starts in a request, an upgrade or an event of a connection's socket belongs to it, also
 * timers, promises and connections that are opened for it. Any other error is a bug of the process,
 * which ends.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Logger } from '../log.ts'

type EndConnection = (error: unknown) => void

const current = new AsyncLocalStorage<EndConnection>()
const known = new WeakMap<Duplex, EndConnection>()

/** Call before anything else listens for the server's connections. */
export function containOwnErrors(server: Server, log: Logger): void {
  server.on('error', (err) => log.error({ err }, 'a connection could not be accepted'))
  server.prependListener('connection', (socket: Socket) => {
    const end: EndConnection = (error) => {
      log.error({ err: error }, 'a connection was ended by its error')
      socket.destroy()
    }
    known.set(socket, end)
    // The parser of its requests begins in this context.
    current.enterWith(end)
    const emit = socket.emit.bind(socket) as (...event: unknown[]) => boolean
    socket.emit = (...event: unknown[]): boolean => runOwn(end, () => emit(...event)) ?? true
  })
}

/** Runs a listener for an upgrade, which the parser does not call in the connection's context. */
export function runFor(socket: Duplex, listener: () => void): void {
  const end = known.get(socket)
  if (end === undefined) listener()
  else runOwn(end, listener)
}

/** Ends the connection that an uncaught error belongs to; false: it belongs to none. */
export function endOwner(error: unknown): boolean {
  const end = current.getStore()
  end?.(error)
  return end !== undefined
}

function runOwn<T>(end: EndConnection, listener: () => T): T | undefined {
  return current.run(end, () => {
    try {
      return listener()
    } catch (error) {
      end(error)
      return undefined
    }
  })
}
