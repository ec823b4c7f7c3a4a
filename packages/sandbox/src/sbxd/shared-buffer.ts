import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'

import { ReadPace } from './read-pace.ts'

/**
 * A stream that can deliver bytes without a buffer for each piece. Node allocates one per read, and
 * memory outside the heap makes it collect garbage 25 times per gigabyte.
 */
export interface SharedBufferStream {
  /**
   * Replaces `data` events, once: buffered bytes are delivered at once, later ones on arrival, also
   * when it was paused. The bytes are valid during the call. Without back-pressure: the consumer
   * must bound the bytes in another way.
   */
  onBytes(consumer: (bytes: Buffer) => void): void
}

export function hasSharedBuffer<S extends Duplex>(stream: S): stream is S & SharedBufferStream {
  return 'onBytes' in stream && typeof stream.onBytes === 'function'
}

/** Shared by all sockets: bytes are processed before the next read of any. */
const SHARED = Buffer.allocUnsafeSlow(256 * 1024)

const REST_MS = 1

/** For `net.connect` and `tls.connect`. */
interface OnRead {
  buffer: Uint8Array
  callback: (bytes: number, buffer: Uint8Array) => boolean
}

/**
 * Connects a socket that can lend. Until `onBytes` it behaves like any other, so that an HTTP
 * client can open an upgrade on it. While it lends and is `paced` it reads a flood in long runs
 * (`ReadPace`).
 */
export function connectSharedBuffer(
  connect: (onread: OnRead) => Socket,
  /**
   * TLS delivers records of at most 16 KiB, however many there are: their size does not show how
   * much is unread.
   */
  { paced }: { paced: boolean },
): Socket & SharedBufferStream {
  const pace = paced ? new ReadPace() : undefined
  let consumer: ((bytes: Buffer) => void) | undefined
  const socket = connect({
    buffer: SHARED,
    callback(length) {
      const bytes = SHARED.subarray(0, length)
      if (!consumer) return socket.push(Buffer.from(bytes))
      consumer(bytes)
      if (pace?.restsAfter(length, performance.now()) !== true) return true
      setTimeout(goOn, REST_MS)
      return false
    },
  })
  const goOn = (): void => {
    if (!socket.isPaused()) socket.resume()
  }
  return Object.assign(socket, {
    onBytes(take: (bytes: Buffer) => void) {
      for (let bytes: unknown; Buffer.isBuffer((bytes = socket.read()));) take(bytes)
      consumer = take
      socket.resume()
    },
  })
}
