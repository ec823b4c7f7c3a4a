import { createHash, randomBytes } from 'node:crypto'
import { type Duplex, duplexPair } from 'node:stream'

import fc from 'fast-check'
import { expect, test } from 'vitest'

import { connectSandbox, type ConnectedSandbox } from '../src/client.ts'
import { SandboxError } from '../src/errors.ts'
import { ByteWriter } from '../src/protocol/bytes.ts'
import {
  encodeOutwardFrame,
  FrameType,
  HEADER_BYTES,
  PROTOCOL_VERSION,
  RESYNC_BYTES,
} from '../src/protocol/frames.ts'

/** Plays an sbxd that welcomes the client and then says what the test wants. */
class HostileSbxd {
  readonly #stream: Duplex

  constructor(stream: Duplex) {
    this.#stream = stream
  }

  static async connect(heartbeatMs = 0): Promise<{ sbxd: HostileSbxd; sandbox: ConnectedSandbox }> {
    const [ours, theirs] = duplexPair()
    const connecting = connectSandbox({ id: 'c', stream: ours, key: randomBytes(32), epoch: 1, heartbeatMs })
    const sbxd = new HostileSbxd(theirs)
    await sbxd.welcome()
    theirs.resume()
    return { sbxd, sandbox: await connecting }
  }

  async welcome(before = Buffer.alloc(0)): Promise<void> {
    let heard = Buffer.alloc(0)
    for await (const chunk of this.#stream.iterator({ destroyOnReturn: false })) {
      heard = Buffer.concat([heard, chunk as Buffer])
      if (heard.length >= RESYNC_BYTES + HEADER_BYTES + 62) break
    }
    const nonce = heard.subarray(RESYNC_BYTES + HEADER_BYTES + 10, RESYNC_BYTES + HEADER_BYTES + 26)
    const welcome = new ByteWriter()
      .bytes(nonce)
      .bytes(randomBytes(16))
      .u16(PROTOCOL_VERSION)
      .u16(1)
      .u64(1)
      .u32(1)
      .u32(1)
      .text('/workspace')
      .u32(0)
    // Bytes of an earlier conversation, the beginning of a frame that swallows everything, a welcome for someone else.
    const other = encodeOutwardFrame(FrameType.WELCOME, 0, 0, Buffer.alloc(60))
    const swallow = encodeOutwardFrame(FrameType.DATA, 1, 1, Buffer.alloc(65_536)).subarray(0, HEADER_BYTES)
    this.#stream.write(Buffer.concat([before, randomBytes(5_000), other, swallow]))
    this.#stream.write(encodeOutwardFrame(FrameType.WELCOME, 0, 0, welcome.done()))
  }

  say(type: FrameType, channel: number, payload: Buffer, flags = 0): void {
    this.#stream.write(encodeOutwardFrame(type, flags, channel, payload))
  }

  raw(bytes: Uint8Array): void {
    this.#stream.write(bytes)
  }

  started(channel = 1): void {
    this.say(FrameType.STARTED, channel, new ByteWriter().u8(0).u32(7).u64(0).u64(0).u64(0).u64(0).done())
  }

  data(offset: number, bytes: number, channel = 1, stream = 1): void {
    this.say(FrameType.DATA, channel, new ByteWriter().u64(offset).bytes(Buffer.alloc(bytes)).done(), stream)
  }

  exit(stdout: number, cause = 1, channel = 1): void {
    const payload = new ByteWriter().u8(cause).u8(1).u16(0).u32(0).u64(stdout).u64(0)
    for (let i = 0; i < 5; i += 1) payload.u64(0)
    for (const bytes of [stdout, 0]) payload.bytes(createHash('sha256').update(Buffer.alloc(bytes)).digest())
    this.say(FrameType.EXIT, channel, payload.done())
  }
}

const request = { id: 'ab'.repeat(16), command: 'x' }

/** Each breaks the protocol once the command has started. */
const breaches: Record<string, (sbxd: HostileSbxd) => void> = {
  'output at a later offset': (sbxd) => sbxd.data(5, 1),
  'output that goes back': (sbxd) => {
    sbxd.data(0, 10)
    sbxd.data(5, 10)
  },
  'more output than was granted': (sbxd) => {
    for (let at = 0; at < 1_000_000; at += 50_000) sbxd.data(at, 50_000)
  },
  'output on stdin': (sbxd) => sbxd.data(0, 1, 1, 0),
  'output on a channel that was never opened': (sbxd) => sbxd.data(0, 1, 99),
  'a second start': (sbxd) => sbxd.started(),
  'a failure after the start': (sbxd) =>
    sbxd.say(FrameType.START_FAILED, 1, new ByteWriter().u32(2).u32(7).done()),
  'two ends': (sbxd) => {
    sbxd.exit(10)
    sbxd.exit(10)
  },
  'an end that counts less than was sent': (sbxd) => {
    sbxd.data(0, 10)
    sbxd.exit(9)
  },
  'output beyond the counted end': (sbxd) => {
    sbxd.exit(5)
    sbxd.data(0, 10)
  },
  'a cause that does not exist': (sbxd) => sbxd.exit(0, 200),
  'a short frame': (sbxd) => sbxd.say(FrameType.EXIT, 1, Buffer.alloc(3)),
  'a number that is none': (sbxd) => sbxd.say(FrameType.CREDIT, 1, Buffer.alloc(8, 255)),
  'a frame of no known type': (sbxd) => sbxd.say(FrameType.RESET_DONE, 1, Buffer.alloc(0)),
  'bytes that are no frame': (sbxd) => sbxd.raw(Buffer.from('hello, this is not a frame')),
  'a note that bytes were lost': (sbxd) => sbxd.say(FrameType.DROPPED, 0, Buffer.alloc(0)),
}

for (const [what, breach] of Object.entries(breaches)) {
  test(`closes the connection on ${what}`, async () => {
    const { sbxd, sandbox } = await HostileSbxd.connect()
    const running = sandbox.run(request)
    sbxd.started()
    const command = await running
    const exit = command.exit.then(
      () => 'resolved',
      (error: unknown) => error,
    )
    breach(sbxd)
    expect(await sandbox.closed).toMatchObject({ code: 'protocol' })
    expect(await exit).not.toBe('resolved')
    await expect(sandbox.files.stat('x')).rejects.toMatchObject({ code: 'protocol' })
    await expect(sandbox.run(request)).rejects.toMatchObject({ code: 'protocol' })
  })
}

test('notices another controller by its WELCOME', async () => {
  const { sbxd, sandbox } = await HostileSbxd.connect()
  sbxd.say(FrameType.WELCOME, 0, Buffer.alloc(80))
  expect(await sandbox.closed).toMatchObject({ code: 'fenced' })
})

test('gives a silent sbxd up', async () => {
  const { sandbox } = await HostileSbxd.connect(20)
  expect(await sandbox.closed).toMatchObject({ code: 'sandbox_lost' })
})

test('waits for WELCOME no longer than it may', async () => {
  const [ours] = duplexPair()
  await expect(
    connectSandbox({ id: 'c', stream: ours, key: randomBytes(32), epoch: 1, handshakeMs: 20 }),
  ).rejects.toMatchObject({ code: 'timeout' })
  expect(ours.destroyed).toBe(true)
})

test('any frames after the start end in a typed error or in nothing, never in a crash', async () => {
  const frame = fc.record({
    type: fc.nat(0x30),
    flags: fc.nat(4),
    channel: fc.nat(2),
    payload: fc.uint8Array({ maxLength: 90 }),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(frame, { maxLength: 20 }), async (frames) => {
      const { sbxd, sandbox } = await HostileSbxd.connect()
      const running = sandbox.run(request).then(
        () => undefined,
        (error: unknown) => error,
      )
      const list = sandbox.files.list('').then(
        () => undefined,
        (error: unknown) => error,
      )
      for (const { type, flags, channel, payload } of frames)
        sbxd.say(type as FrameType, channel, Buffer.from(payload), flags)
      await new Promise((resolve) => setImmediate(resolve))
      await sandbox.close()
      for (const outcome of [await running, await list]) {
        expect(outcome === undefined || outcome instanceof SandboxError).toBe(true)
      }
      await sandbox.closed
    }),
    { numRuns: 200 },
  )
})
