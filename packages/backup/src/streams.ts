/** Transformations between a source and the archive, as iterables of bytes. */
import { pipeline, Readable, type Transform } from 'node:stream'
import { constants, createZstdCompress, createZstdDecompress } from 'node:zlib'

/** The fastest level: users work while a backup runs. */
const LEVEL = 1

export function compressed(source: AsyncIterable<Uint8Array>): AsyncIterable<Buffer> {
  return through(source, createZstdCompress({ params: { [constants.ZSTD_c_compressionLevel]: LEVEL } }))
}

export function decompressed(source: AsyncIterable<Uint8Array>): AsyncIterable<Buffer> {
  return through(source, createZstdDecompress())
}

function through(source: AsyncIterable<Uint8Array>, step: Transform): AsyncIterable<Buffer> {
  // An error at either end destroys the step, so that its reader receives it.
  return pipeline(Readable.from(source), step, () => undefined)
}

/** The same bytes, and their number so far. */
export function counted(source: AsyncIterable<Uint8Array>): {
  bytes: AsyncIterable<Uint8Array>
  count: () => number
} {
  let count = 0
  async function* bytes(): AsyncGenerator<Uint8Array> {
    for await (const chunk of source) {
      count += chunk.length
      yield chunk
    }
  }
  return { bytes: bytes(), count: () => count }
}
