import type { Duplex, Readable, Writable } from 'node:stream'

import { readClientHello } from './client-hello.ts'
import type { ConnectionClock } from './clock.ts'
import { readChunk, writeChunk } from './reading.ts'
import { EgressRefused } from './refusal.ts'

/** Counts bytes before they are forwarded. Each method throws when a budget is used up. */
export interface Meter {
  up(bytes: number): void
  down(bytes: number): void
}

/** Relays both directions until each has ended. Rejects when one breaks or a budget is used up. */
export async function relay(
  client: Duplex,
  server: Duplex,
  meter: Meter,
  clock: ConnectionClock,
): Promise<void> {
  clock.passing()
  const both = [
    copy(client, server, clock, (bytes) => meter.up(bytes)),
    copy(server, client, clock, (bytes) => meter.down(bytes)),
  ]
  for (const one of both) one.catch((error: unknown) => clock.end(error))
  await Promise.all(both)
}

async function copy(
  from: Readable,
  to: Writable,
  clock: ConnectionClock,
  count: (bytes: number) => void,
): Promise<void> {
  for (;;) {
    const chunk = await readChunk(from, clock.signal)
    if (!chunk) break
    count(chunk.length)
    clock.touch()
    await writeChunk(to, chunk, clock.signal)
  }
  to.end()
}

/**
 * The first bytes in a tunnel to port 443 must be TLS for the requested name: other names may share
 * the address. The bytes stay in the stream. Throws `not_tls` or `other_name`.
 */
export async function checkTls(client: Duplex, host: string, signal: AbortSignal): Promise<void> {
  let bytes: Buffer = Buffer.alloc(0)
  for (;;) {
    const chunk = await readChunk(client, signal)
    if (chunk) bytes = bytes.length > 0 ? Buffer.concat([bytes, chunk]) : chunk
    const first = readClientHello(bytes)
    if (first.kind === 'other' || (!chunk && bytes.length > 0))
      throw new EgressRefused('not_tls', `only TLS may be spoken to ${host} on port 443.`)
    if (first.kind === 'more' && chunk) continue
    // Without a name the server would choose one, unknown to us.
    if (first.kind === 'tls' && first.name !== host)
      throw new EgressRefused(
        'other_name',
        `TLS must be begun for the name ${host}; it was for ${first.name ?? 'none'}.`,
      )
    if (bytes.length > 0) client.unshift(bytes)
    return
  }
}
