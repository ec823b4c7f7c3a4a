/** MCP over HTTP. The SDK does sessions and resumption; this adds bounds, and an end to calls whose stream is over. */
import {
  type AuthProvider,
  type JSONRPCMessage,
  StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client'
import { boundedFetch } from './bounded-fetch.ts'

export interface HttpTransportOptions {
  url: string
  headers: Readonly<Record<string, string>>
  auth: AuthProvider | undefined
  /** Bytes of one message. */
  maxMessageBytes: number
}

type SendOptions = NonNullable<Parameters<StreamableHTTPClientTransport['send']>[1]>

/** The error code of an answer that we make ourselves, for a stream that ended without one. */
export const STREAM_ENDED = -32_099

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

  constructor({ url, headers, auth, maxMessageBytes }: HttpTransportOptions) {
    const told = (error: Error): void => {
      this.cutOff = error.message
    }
    super(new URL(url), {
      // Redirects are followed within the origin only, as the SDK does by default: headers go nowhere else.
      fetch: boundedFetch(maxMessageBytes, told),
      requestInit: { headers: { ...headers } },
      reconnectionOptions: RECONNECTION,
      ...(auth === undefined ? {} : { authProvider: auth }),
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
