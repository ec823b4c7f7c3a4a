/** One WebSocket as the SDK's stream: one JSON-RPC message per text message, with back-pressure both ways. */
import type { AnyMessage, Stream } from '@agentclientprotocol/sdk'
import type { WebSocket } from 'ws'

/** Bytes of one message. A prompt is far below; the largest thing that a client sends. */
export const MAX_MESSAGE_BYTES = 32 * 1024 * 1024

const UNREADABLE: AnyMessage = {
  jsonrpc: '2.0',
  id: null,
  error: { code: -32_700, message: 'This message is not JSON.' },
}

export function webSocketStream(socket: WebSocket): Stream {
  let open = true
  const readable = new ReadableStream<AnyMessage>(
    {
      start(controller) {
        socket.on('message', (data: Buffer, isBinary) => {
          if (!open) return
          const message = isBinary ? undefined : parse(data)
          if (message === undefined) {
            socket.send(JSON.stringify(UNREADABLE))
            return
          }
          controller.enqueue(message)
          if ((controller.desiredSize ?? 0) <= 0) socket.pause()
        })
        // Always followed by `close`.
        socket.on('error', () => socket.terminate())
        socket.once('close', () => {
          if (open) controller.close()
          open = false
        })
      },
      pull: () => {
        if (socket.isPaused) socket.resume()
      },
      cancel() {
        open = false
        socket.close()
      },
    },
    new CountQueuingStrategy({ highWaterMark: 64 }),
  )
  const writable = new WritableStream<AnyMessage>({
    write: (message) =>
      new Promise<void>((resolve, reject) => {
        socket.send(JSON.stringify(message), (error) => (error == null ? resolve() : reject(error)))
      }),
    close: () => socket.close(),
    abort: () => socket.terminate(),
  })
  return { readable, writable }
}

/** The SDK answers whatever is JSON but no message. */
function parse(data: Buffer): AnyMessage | undefined {
  try {
    return JSON.parse(data.toString('utf8')) as AnyMessage
  } catch {
    return undefined
  }
}
