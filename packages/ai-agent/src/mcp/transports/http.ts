/** MCP over HTTP. The SDK does sessions and resumption; this adds bounds, and an end to calls whose stream is over. */
import {
  type FetchLike,
  type JSONRPCMessage,
  StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client'
import { boundedFetch } from '@sandlot/shared/node/safe-fetch'
import { STREAM_ENDED } from '../error.ts'
import type { ServerAccess } from '../server-access.ts'

export interface HttpTransportOptions {
  url: string
  headers: Readonly<Record<string, string>>
  auth: ServerAccess | undefined
  /** Bytes of one message. */
  maxMessageBytes: number
  /** Default: the one of this process. */
  fetch?: FetchLike | undefined
}

type SendOptions = NonNullable<Parameters<StreamableHTTPClientTransport['send']>[1]>

/** Milliseconds between tries to take up a stream again. */
const RECONNECTION = {
  initialReconnectionDelay: 250,
  maxReconnectionDelay: 5_000,
  reconnectionDelayGrowFactor: 2,
  maxRetries: 4,
}

export class HttpTransport extends StreamableHTTPClientTransport {
  /** Why an answer was cut off, in words. */
  cutOff: string | undefined

  constructor({ url, headers, auth, maxMessageBytes, fetch: base = fetch }: HttpTransportOptions) {
    const onTooLarge = (error: Error): void => {
      this.cutOff = error.message
    }
    const bounded = boundedFetch(base, { maxBytes: maxMessageBytes, onTooLarge })
    super(new URL(url), {
      // Redirects are followed within the origin only, as the SDK does by default: headers go nowhere else.
      fetch: auth?.watch(bounded) ?? bounded,
      requestInit: { headers: { ...headers } },
      reconnectionOptions: RECONNECTION,
      authProvider: auth?.provider(),
    })
  }

  override send(message: JSONRPCMessage | JSONRPCMessage[], options?: SendOptions): Promise<void> {
    const id = !Array.isArray(message) && 'method' in message && 'id' in message ? message.id : undefined
    if (id === undefined) return super.send(message, options)
    const onRequestStreamEnd = (): void => {
      options?.onRequestStreamEnd?.()
      // Without it the call would wait for its time-out. One that has its answer already does not hear of this.
      const error = {
        code: STREAM_ENDED,
        message: this.cutOff ?? 'the connection ended before the answer came',
      }
      this.onmessage?.({ jsonrpc: '2.0', id, error })
    }
    return super.send(message, { ...options, onRequestStreamEnd })
  }
}
