/** Steps between a source and the archive, each an iterable of bytes. */
import { pipeline, Readable, type Transform } from 'node:stream'
import { constants, createZstdCompress, createZstdDecompress } from 'node:zlib'

/** The fastest of those that are worth it: a backup runs beside people's work. */
const LEVEL = 1

export function compressed(source: AsyncIterable<Uint8Array>): AsyncIterable<Buffer> {
  return through(source, createZstdCompress({ params: { [constants.ZSTD_c_compressionLevel]: LEVEL } }))
}

export function decompressed(source: AsyncIterable<Uint8Array>): AsyncIterable<Buffer> {
  return through(source, createZstdDecompress())
}

function through(source: AsyncIterable<Uint8Array>, step: Transform): AsyncIterable<Buffer> {
  // An error of either end destroys the step, and so reaches who reads it.
  return pipeline(Readable.from(source), step, () => undefined)
}

/** The same bytes, and how many they were so far. */
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
