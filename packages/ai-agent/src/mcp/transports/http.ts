/**
 * MCP over HTTP: the SDK's transport, with limits, and an error for a call whose stream ended
 * without a result, for which the SDK waits until the time-out.
 */
import {
  type FetchLike,
  type JSONRPCMessage,
  StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client'
import { boundedFetch } from '@sandlot/shared/node/safe-fetch'
import { STREAM_ENDED } from '../error.ts'
import type { ServerAccess } from '../server-access.ts'
import { RawResults, type ToolTransport } from './raw-results.ts'

interface HttpTransportOptions {
  url: string
  headers: Readonly<Record<string, string>>
  auth: ServerAccess | undefined
  /** Bytes of one message. */
  maxMessageBytes: number
  /** Default: this process's `fetch`. */
  fetch?: FetchLike | undefined
}

type SendOptions = NonNullable<Parameters<StreamableHTTPClientTransport['send']>[1]>

/** A message that has begun is whole by then. A call may take longer before it is answered. */
const TRANSFER_MS = 5_000

/** Delays before a stream is resumed, in milliseconds. */
const RECONNECTION = {
  initialReconnectionDelay: 250,
  maxReconnectionDelay: 5_000,
  reconnectionDelayGrowFactor: 2,
  maxRetries: 4,
}

export class HttpTransport extends StreamableHTTPClientTransport implements ToolTransport {
  /** Why a response was cut off. */
  cutOff: string | undefined
  readonly rawResults: RawResults

  constructor({ url, headers, auth, maxMessageBytes, fetch: base = fetch }: HttpTransportOptions) {
    const onCutOff = (error: Error): void => {
      this.cutOff = error.message
    }
    const bounded = boundedFetch(base, {
      maxBytes: maxMessageBytes,
      transferMs: TRANSFER_MS,
      onCutOff,
    })
    const rawResults = new RawResults()
    super(new URL(url), {
      // The SDK follows redirects within the origin only: headers go nowhere else.
      fetch: rawResults.fetch(auth?.watch(bounded) ?? bounded),
      requestInit: { headers: { ...headers } },
      reconnectionOptions: RECONNECTION,
      authProvider: auth?.provider(),
    })
    this.rawResults = rawResults
  }

  override send(message: JSONRPCMessage | JSONRPCMessage[], options?: SendOptions): Promise<void> {
    this.rawResults.sent(message)
    const id = !Array.isArray(message) && 'method' in message && 'id' in message ? message.id : undefined
    if (id === undefined) return super.send(message, options)
    const onRequestStreamEnd = (): void => {
      options?.onRequestStreamEnd?.()
      // Otherwise the call would wait for its time-out. The SDK ignores it after a result.
      const error = {
        code: STREAM_ENDED,
        message: this.cutOff ?? 'the connection ended before the answer came',
      }
      this.onmessage?.({ jsonrpc: '2.0', id, error })
    }
    return super.send(message, { ...options, onRequestStreamEnd })
  }
}
