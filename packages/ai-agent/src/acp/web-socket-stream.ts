/** One WebSocket as the SDK's stream: one JSON-RPC message per text message, with back-pressure both ways. */
import type { Duplex } from 'node:stream'
import type { AnyMessage, Stream } from '@agentclientprotocol/sdk'
import { JoinedWrites } from '@sandlot/shared/node/join-writes'
import type { WebSocket } from 'ws'
import { readMessage } from './incoming.ts'

/** Bytes that may be on their way to a client before the next message waits. */
const MAX_WAITING_BYTES = 1024 * 1024

/** `connection`: what `socket` was made from. */
export function webSocketStream(socket: WebSocket, connection: Duplex): Stream {
  const writes = new JoinedWrites(connection)
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
    write(message, controller) {
      writes.join()
      const text = JSON.stringify(message)
      if (socket.bufferedAmount < MAX_WAITING_BYTES) {
        socket.send(text, (error) => {
          if (error != null) controller.error(error)
        })
        return undefined
      }
      return new Promise<void>((resolve, reject) => {
        socket.send(text, (error) => (error == null ? resolve() : reject(error)))
      })
    },
    close: () => socket.close(),
    abort() {
      writes.flush()
      socket.terminate()
    },
  })
  return { readable, writable }
}
