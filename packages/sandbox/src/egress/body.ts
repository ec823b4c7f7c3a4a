import type { Duplex } from 'node:stream'

import { readChunk } from './reading.ts'
import { EgressRefused } from './refusal.ts'
import type { BodyFraming } from './request.ts'

const LONGEST_LINE = 4_096

/** The bytes of a request's body without framing. Bytes after it stay unread in the stream. */
export async function* readBody(
  stream: Duplex,
  framing: BodyFraming,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  if (framing.kind === 'length') yield* readExactly(stream, framing.bytes, signal)
  if (framing.kind === 'chunked') yield* readChunked(stream, signal)
}

async function* readExactly(stream: Duplex, bytes: number, signal: AbortSignal): AsyncGenerator<Buffer> {
  for (let left = bytes; left > 0;) {
    const chunk = await readChunk(stream, signal)
    if (!chunk) throw new EgressRefused('bad_request', 'the body of the request is shorter than it says.')
    if (chunk.length > left) stream.unshift(chunk.subarray(left))
    const part = chunk.subarray(0, left)
    left -= part.length
    yield part
  }
}

/**
 * RFC 9112 section 7.1, and nothing that only some parsers accept: no bare LF, no sign, no `0x`, no
 * space.
 */
async function* readChunked(stream: Duplex, signal: AbortSignal): AsyncGenerator<Buffer> {
  for (;;) {
    const size = /^([0-9A-Fa-f]{1,12})(?:;[\t\x20-\x7e]*)?$/.exec(await readLine(stream, signal))?.[1]
    if (size === undefined) throw new EgressRefused('bad_request', 'the length of a chunk is not a number.')
    const bytes = Number.parseInt(size, 16)
    if (bytes === 0) break
    yield* readExactly(stream, bytes, signal)
    if ((await readLine(stream, signal)) !== '')
      throw new EgressRefused('bad_request', 'a chunk is longer than it says.')
  }
  // Trailers are read and not forwarded.
  for (let lines = 0; (await readLine(stream, signal)) !== ''; lines += 1)
    if (lines > 100) throw new EgressRefused('bad_request', 'the request has too many trailers.')
}

async function readLine(stream: Duplex, signal: AbortSignal): Promise<string> {
  let bytes: Buffer = Buffer.alloc(0)
  for (;;) {
    const chunk = await readChunk(stream, signal)
    if (!chunk) throw new EgressRefused('bad_request', 'the body of the request ended too early.')
    bytes = bytes.length > 0 ? Buffer.concat([bytes, chunk]) : chunk
    const end = bytes.indexOf(0x0a)
    if ((end === -1 ? bytes.length : end) > LONGEST_LINE)
      throw new EgressRefused('bad_request', 'a line of the body is too long.')
    if (end === -1) continue
    if (bytes.length > end + 1) stream.unshift(bytes.subarray(end + 1))
    const line = bytes.subarray(0, end).toString('latin1')
    if (!line.endsWith('\r') || line.indexOf('\r') !== line.length - 1)
      throw new EgressRefused('bad_request', 'the lines of the body do not end in CR LF.')
    return line.slice(0, -1)
  }
}
