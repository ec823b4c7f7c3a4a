/** One WebSocket as the SDK's stream: one JSON-RPC message per text message, with back-pressure both ways. */
import type { AnyMessage, Stream } from '@agentclientprotocol/sdk'
import type { WebSocket } from 'ws'
import { readMessage } from './incoming.ts'

export function webSocketStream(socket: WebSocket): Stream {
  let open = true
  const readable = new ReadableStream<AnyMessage>(
    {
      start(controller) {
        socket.on('message', (data: Buffer, isBinary) => {
          if (!open) return
          const incoming = readMessage(isBinary ? '' : data.toString('utf8'))
          if ('answer' in incoming) {
            socket.send(JSON.stringify(incoming.answer))
            return
          }
          controller.enqueue(incoming.message)
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
