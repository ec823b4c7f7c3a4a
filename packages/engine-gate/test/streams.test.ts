import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { campaign, extent } from '../../../test/campaign.ts'
import { startGate, type TestGate } from './gate-fixture.ts'
import { openRaw } from './raw-client.ts'
import { OURS, recordingEngine, type RecordingEngine } from './recording-engine.ts'

let engine: RecordingEngine
let gate: TestGate
beforeAll(async () => {
  engine = await recordingEngine()
  gate = await startGate(engine.dockerHost, { mostStreams: 4 })
})
afterAll(async () => {
  await gate.close()
  await engine.close()
})

const REQUEST = `POST /v1.41/containers/${OURS}/attach?stream=1&stdin=1&stdout=1&stderr=1 HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: tcp\r\nContent-Length: 0\r\n\r\n`

/** An attached client, its answer read away, and the engine's end of the same stream. */
async function attach(): Promise<{ client: Socket; container: Socket }> {
  const arrived = Promise.withResolvers<Socket>()
  engine.onAttach((socket) => arrived.resolve(socket))
  const client = await openRaw(gate.socket)
  client.write(REQUEST)
  let head = ''
  while (!head.includes('\r\n\r\n')) {
    const chunk = client.read() as Buffer | null
    if (chunk === null) await once(client, 'readable')
    else head += chunk.toString('latin1')
  }
  expect(head).toMatch(/^HTTP\/1\.1 101 /)
  return { client, container: await arrived.promise }
}

async function all(socket: Socket): Promise<Buffer> {
  const chunks: Buffer[] = []
  // Not `for await`, which destroys the socket at the end, together with what it has still to
  // write.
  socket.on('data', (chunk: Buffer) => chunks.push(chunk)).resume()
  await once(socket, 'end')
  return Buffer.concat(chunks)
}

/** Nobody looks at this end any more; it closes when the other one does. */
function abandon(socket: Socket): void {
  socket.once('end', () => socket.destroy()).resume()
}

async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const end = performance.now() + 10_000
  while (!(await holds())) {
    if (performance.now() > end) throw new Error(`waited in vain for ${what}`)
    await turn()
  }
}

describe('an attached stream', () => {
  test('carries every byte both ways, however it is cut', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 1, max: 200_000 }), { minLength: 1, maxLength: 5 }),
        fc.array(fc.integer({ min: 1, max: 200_000 }), { minLength: 1, maxLength: 5 }),
        async (there, back) => {
          const { client, container } = await attach()
          const sent = there.map((size) => randomBytes(size))
          const answered = back.map((size) => randomBytes(size))
          for (const piece of sent) client.write(piece)
          for (const piece of answered) container.write(piece)
          client.end()
          container.end()
          const [got, heard] = await Promise.all([all(container), all(client)])
          expect(got.equals(Buffer.concat(sent))).toBe(true)
          expect(heard.equals(Buffer.concat(answered))).toBe(true)
        },
      ),
      { numRuns: extent(5, 50), seed: campaign.seed },
    )
  })

  test('ends one direction at a time', async () => {
    const { client, container } = await attach()
    client.end('last words')
    expect((await all(container)).toString()).toBe('last words')
    // The client's end is over; the container's is not.
    container.write('still ')
    container.end('talking')
    expect((await all(client)).toString()).toBe('still talking')
    for (const socket of [client, container]) if (!socket.closed) await once(socket, 'close')
  })

  test('waits for a reader that does not read', async () => {
    const { client, container } = await attach()
    const piece = Buffer.alloc(64 * 1024)
    let accepted = 0
    // Kernel buffers and one high-water mark on each hop; far from what is offered here.
    for (let count = 0; count < 4096; count += 1) {
      if (container.write(piece)) accepted += piece.length
      else if (container.writableLength > 4 * 1024 * 1024) break
      if (count % 64 === 0) await turn()
    }
    expect(accepted).toBeLessThan(8 * 1024 * 1024)
    container.end()
    const total = (await all(client)).length
    expect(total).toBe(
      container.bytesWritten - 'HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n'.length,
    )
    client.destroy()
  })

  test('goes with either of its ends', async () => {
    for (const which of ['client', 'container'] as const) {
      const ends = await attach()
      const other = which === 'client' ? ends.container : ends.client
      other.on('error', () => {}).resume()
      ends[which].destroy()
      await once(other, 'end')
      other.destroy()
    }
    await until('the engine to be left alone', () => engine.streams() === 0)
  })

  test('is not dialled for a client that leaves early, which frees everything', async () => {
    const release = engine.hold()
    try {
      for (let round = 0; round < 12; round += 1) {
        const dialled = engine.requests.filter(({ url }) => url.includes('/attach')).length
        const client = await openRaw(gate.socket)
        client.write(REQUEST)
        await until(
          'the dialling',
          () => engine.requests.filter(({ url }) => url.includes('/attach')).length > dialled,
        )
        client.destroy()
        // Only four streams may be: were one of these not freed, the dialling would end here.
        await until('the dialling to be over', () => engine.streams() === 0)
      }
    } finally {
      release()
    }
    const { client, container } = await attach()
    abandon(container)
    client.destroy()
    await until('it to be gone', () => engine.streams() === 0)
  })

  test('is one of at most so many', async () => {
    await until('the earlier ones to be gone', () => engine.streams() === 0)
    const open = [await attach(), await attach(), await attach(), await attach()]
    const fifth = await openRaw(gate.socket)
    fifth.write(REQUEST)
    expect((await all(fifth)).toString()).toMatch(/^HTTP\/1\.1 503 /)
    for (const { client, container } of open) {
      abandon(container)
      client.destroy()
    }
    await until('them to be gone', () => engine.streams() === 0)
    const { client, container } = await attach()
    abandon(container)
    client.destroy()
    await until('it to be gone', () => engine.streams() === 0)
  })
})
