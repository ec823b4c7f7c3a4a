/** The dependencies of the request handlers of one client. */
import type { AgentMethod, AgentParams } from '@sandlot/shared/agent-requests'
import { messageOf } from '@sandlot/shared/base/errors'
import type { ClientConnection } from './connection.ts'
import { toRequestError } from './errors.ts'
import type { ProtocolParts } from './parts.ts'

/** A method, because the server holds the handlers of all requests in one list. */
interface Answering<Params> {
  answer(request: {
    params: Params
    connection: ClientConnection
    /** Aborted with `$/cancel_request`, and when the connection closes. */
    signal: AbortSignal
  }): Promise<unknown>
}

export type ExtensionHandler = Answering<unknown>['answer']

/** By method, for every connection: one for each row of `AGENT_REQUESTS`. */
export type ExtensionHandlers = { readonly [M in AgentMethod]: Answering<AgentParams<M>>['answer'] }

type Handler<C, R> = (context: C) => Promise<R>

export interface HandlerContext {
  parts: ProtocolParts
  /** Set before the first message is handled. */
  readonly connection: ClientConnection
  /**
   * Wraps a handler so that it rejects with our errors only. The SDK checks that `initialize` comes
   * first.
   */
  handled: <C extends object, R>(handle: Handler<C, R>) => Handler<C, R>
}

export function createHandlerContext(
  parts: ProtocolParts,
  connection: () => ClientConnection,
): HandlerContext {
  const report = (bug: unknown): void =>
    parts.log.warn({ error: messageOf(bug), stack: stackOf(bug) }, 'a request failed')
  return {
    parts,
    get connection() {
      return connection()
    },
    handled: (handle) => async (context) => {
      try {
        return await handle(context)
      } catch (error) {
        throw toRequestError(error, report)
      }
    },
  }
}

function stackOf(thrown: unknown): string | undefined {
  return thrown instanceof Error ? thrown.stack : undefined
}
