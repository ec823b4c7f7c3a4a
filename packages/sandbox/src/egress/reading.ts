import type { Duplex, Readable, Writable } from 'node:stream'

import { EgressRefused } from './refusal.ts'
import { HEAD_BYTES } from './request.ts'

const END_OF_HEAD = Buffer.from('\r\n\r\n')

/** Waits for one of these events, the stream's end or the signal, and removes its listeners. */
function waitFor(stream: Readable | Writable, event: string, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const settle = (act: () => void) => (): void => {
      stream.off(event, done).off('end', done).off('close', done).off('error', done)
      signal.removeEventListener('abort', stop)
      act()
    }
    const done = settle(resolve)
    const stop = settle(() => reject(signal.reason))
    stream.on(event, done).on('end', done).on('close', done).on('error', done)
    signal.addEventListener('abort', stop, { once: true })
    if (signal.aborted) stop()
  })
}

/**
 * The next bytes, or undefined at the end. Rejects with `broken` when the stream was destroyed
 * before its end, and with the signal's reason.
 */
export async function readChunk(stream: Readable, signal: AbortSignal): Promise<Buffer | undefined> {
  for (;;) {
    signal.throwIfAborted()
    const chunk: unknown = stream.read()
    if (Buffer.isBuffer(chunk)) return chunk
    if (stream.readableEnded) return undefined
    if (stream.destroyed)
      throw new EgressRefused('broken', 'the connection broke.', { cause: stream.errored })
    await waitFor(stream, 'readable', signal)
  }
}

/**
 * Writes, and resolves when more may be written. Rejects with `broken` when the stream is
 * destroyed.
 */
export async function writeChunk(
  stream: Writable,
  chunk: Uint8Array | string,
  signal: AbortSignal,
): Promise<void> {
  if (!stream.destroyed) stream.write(chunk)
  while (!stream.destroyed && stream.writableNeedDrain) await waitFor(stream, 'drain', signal)
  if (stream.destroyed) throw new EgressRefused('broken', 'the connection broke.', { cause: stream.errored })
}

/**
 * The head of a request with its empty line; bytes after it are put back. Undefined when the
 * connection ended before its first byte. Throws `bad_request` as soon as the bytes cannot be a
 * head.
 */
export async function readHead(stream: Duplex, signal: AbortSignal): Promise<string | undefined> {
  let bytes: Buffer = Buffer.alloc(0)
  for (;;) {
    const chunk = await readChunk(stream, signal)
    if (!chunk && bytes.length === 0) return undefined
    if (!chunk) throw new EgressRefused('bad_request', 'the request ended in the middle of its head.')
    const searched = Math.max(0, bytes.length - 3)
    bytes = Buffer.concat([bytes, chunk])
    const end = bytes.indexOf(END_OF_HEAD, searched)
    const head = end === -1 ? bytes : bytes.subarray(0, end + 4)
    if (head.length > HEAD_BYTES)
      throw new EgressRefused('bad_request', 'the head of the request is too long.')
    checkLines(head, bytes.length - chunk.length)
    if (end === -1) continue
    if (bytes.length > head.length) stream.unshift(bytes.subarray(head.length))
    return head.toString('latin1')
  }
}

/** Lines end in CR LF only; another protocol (TLS, SOCKS) is detected at its first byte. */
function checkLines(head: Buffer, from: number): void {
  const first = head[0] ?? 0
  if (first < 0x21 || first > 0x7e) throw new EgressRefused('bad_request', 'this is not HTTP.')
  // One byte back, because a CR is judged by the next byte. No further: heads may arrive byte by
  // byte.
  for (let at = Math.max(0, from - 1); at < head.length; at += 1) {
    const byte = head[at]
    if (byte === 0x0a && head[at - 1] !== 0x0d) throw bareLine()
    if (byte === 0x0d && at + 1 < head.length && head[at + 1] !== 0x0a) throw bareLine()
    if (byte === 0) throw new EgressRefused('bad_request', 'the request has a NUL in its head.')
  }
}

function bareLine(): EgressRefused {
  return new EgressRefused('bad_request', 'the lines of the request do not end in CR LF.')
}
