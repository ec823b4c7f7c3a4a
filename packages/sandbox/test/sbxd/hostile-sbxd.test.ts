import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { type Duplex, duplexPair } from 'node:stream'

import fc from 'fast-check'
import { expect, test } from 'vitest'

import { extent } from '../../../../test/campaign.ts'
import { createLocalProcessBackend } from '../../src/backends/local-process.ts'
import { connectSandbox, type ConnectedSandbox } from '../../src/sbxd/client.ts'
import { SandboxError } from '../../src/errors.ts'
import { createHostGuard } from '../../src/controller/host-guard.ts'
import { DEFAULT_LIMITS } from '../../src/limits.ts'
import { ByteWriter } from '../../src/sbxd/protocol/bytes.ts'
import {
  encodeOutwardFrame,
  FrameType,
  HEADER_BYTES,
  PROTOCOL_VERSION,
  RESYNC_BYTES,
} from '../../src/sbxd/protocol/frames.ts'

type ConnectOptions = Parameters<typeof connectSandbox>[0]

/** Plays an sbxd that welcomes the client and then says what the test wants. */
class HostileSbxd {
  readonly #stream: Duplex

  constructor(stream: Duplex) {
    this.#stream = stream
  }

  static async connect(
    heartbeatMs = 0,
    more: Pick<ConnectOptions, 'resetMs' | 'statMs'> = {},
  ): Promise<{ sbxd: HostileSbxd; sandbox: ConnectedSandbox }> {
    const [ours, theirs] = duplexPair()
    const key = randomBytes(32)
    const connecting = connectSandbox({ id: 'c', stream: ours, key, epoch: 1, heartbeatMs, ...more })
    const sbxd = new HostileSbxd(theirs)
    await sbxd.welcome()
    theirs.resume()
    return { sbxd, sandbox: await connecting }
  }

  async welcome(before = Buffer.alloc(0)): Promise<void> {
    let received = Buffer.alloc(0)
    for await (const chunk of this.#stream.iterator({ destroyOnReturn: false })) {
      received = Buffer.concat([received, chunk as Buffer])
      if (received.length >= RESYNC_BYTES + HEADER_BYTES + 62) break
    }
    const nonce = received.subarray(RESYNC_BYTES + HEADER_BYTES + 10, RESYNC_BYTES + HEADER_BYTES + 26)
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
    // Bytes of an earlier conversation, the beginning of a frame that swallows everything, a
    // welcome for someone else.
    const other = encodeOutwardFrame(FrameType.WELCOME, 0, 0, Buffer.alloc(60))
    const swallow = encodeOutwardFrame(FrameType.DATA, 1, 1, Buffer.alloc(65_536)).subarray(0, HEADER_BYTES)
    this.#stream.write(Buffer.concat([before, randomBytes(5_000), other, swallow]))
    this.#stream.write(encodeOutwardFrame(FrameType.WELCOME, 0, 0, welcome.done()))
  }

  say(type: FrameType, channel: number, payload: Buffer, flags = 0): void {
    this.#stream.write(encodeOutwardFrame(type, flags, channel, payload))
  }

  /** Resolves when the client says something. */
  async asked(): Promise<void> {
    await once(this.#stream, 'data')
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

  exit(stdout: number, cause = 1, channel = 1, sha256?: Buffer, facts: Buffer = Buffer.alloc(0)): void {
    const payload = new ByteWriter().u8(cause).u8(1).u16(0).u32(0).u64(stdout).u64(0)
    for (let i = 0; i < 5; i += 1) payload.u64(0)
    payload.bytes(sha256 ?? createHash('sha256').update(Buffer.alloc(stdout)).digest())
    payload.bytes(createHash('sha256').digest()).bytes(facts)
    this.say(FrameType.EXIT, channel, payload.done())
  }
}

/** The fact that these bytes of stdout were cut out. */
const gap = (from: number, to: number): Buffer =>
  new ByteWriter().u8(1).u16(32).u64(from).u64(to).u64(0).u64(0).done()

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
  'other bytes than were counted': (sbxd) => {
    sbxd.data(0, 10)
    sbxd.exit(10, 1, 1, randomBytes(32))
  },
  'a gap that ends before it begins': (sbxd) => sbxd.exit(9, 1, 1, undefined, gap(5, 4)),
  'a gap beyond the end': (sbxd) => sbxd.exit(9, 1, 1, undefined, gap(5, 10)),
  'a gap that leaves more than was asked for': (sbxd) =>
    sbxd.exit(2 ** 40, 1, 1, Buffer.alloc(32), gap(0, 1_000)),
  'bytes that a gap takes back': (sbxd) => {
    sbxd.data(0, 10)
    sbxd.exit(100, 1, 1, undefined, gap(5, 50))
  },
  'bytes of the gap': (sbxd) => {
    sbxd.exit(100, 1, 1, undefined, gap(5, 50))
    sbxd.data(0, 6)
  },
  'a fact that is too short': (sbxd) => sbxd.exit(0, 1, 1, undefined, Buffer.from([2, 1, 0, 9])),
  'a list of facts that is cut off': (sbxd) => sbxd.exit(0, 1, 1, undefined, Buffer.from([99, 9, 0, 1])),
  'a cause that does not exist': (sbxd) => sbxd.exit(0, 200),
  'a short frame': (sbxd) => sbxd.say(FrameType.EXIT, 1, Buffer.alloc(3)),
  'a number that is none': (sbxd) => sbxd.say(FrameType.CREDIT, 1, Buffer.alloc(8, 255)),
  'a frame of no known type': (sbxd) => sbxd.say(FrameType.RESET_DONE, 1, Buffer.alloc(0)),
  'bytes that are no frame': (sbxd) => sbxd.raw(Buffer.from('hello, this is not a frame')),
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

test('gives the stream up when bytes were dropped and its frames are not counted', async () => {
  const { sbxd, sandbox } = await HostileSbxd.connect()
  const running = sandbox.run(request)
  sbxd.say(FrameType.DROPPED, 0, Buffer.alloc(0))
  expect(await sandbox.closed).toMatchObject({ code: 'sandbox_lost' })
  await expect(running).rejects.toMatchObject({ code: 'sandbox_lost' })
})

test('when bytes were dropped, asks whether its frames have arrived: all have, or the stream is given up', async () => {
  const { sbxd, sandbox } = await HostileSbxd.connect()
  const running = sandbox.run(request)
  await sbxd.asked()
  const drop = async (frame: number, arrived: number): Promise<void> => {
    sbxd.say(FrameType.DROPPED, 0, new ByteWriter().u64(1).done())
    await sbxd.asked()
    sbxd.say(FrameType.PONG, 0, new ByteWriter().u64(frame).u64(arrived).done())
  }
  await drop(2, 2)
  sbxd.started()
  await running
  await drop(3, 2)
  expect(await sandbox.closed).toMatchObject({ code: 'sandbox_lost' })
})

test('gives the stream up when bytes are dropped all the time and no question is answered', async () => {
  const { sbxd, sandbox } = await HostileSbxd.connect()
  for (let i = 0; i < 1_000; i += 1) sbxd.say(FrameType.DROPPED, 0, new ByteWriter().u64(1).done())
  expect(await sandbox.closed).toMatchObject({ code: 'sandbox_lost' })
})

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

test('waits for the end of a reset no longer than its limit, and continues when it comes later', async () => {
  const { sbxd, sandbox } = await HostileSbxd.connect(0, { resetMs: 20 })
  await expect(sandbox.reset()).rejects.toMatchObject({ code: 'timeout' })
  sbxd.say(FrameType.RESET_DONE, 1, Buffer.alloc(0))
  const listed = sandbox.commands()
  sbxd.say(FrameType.COMMAND_LIST, 2, new ByteWriter().u32(0).done())
  expect(await listed).toEqual([])
  await sandbox.close()
})

test('a sandbox that does not report the disk of the host does not hide it', async () => {
  const silent = await HostileSbxd.connect(0, { statMs: 20 })
  const honest = await HostileSbxd.connect()
  // For a remote engine, whose disk only sandboxes see.
  const whole = createLocalProcessBackend({ sbxd: 'none', directory: 'none' })
  const { hostDisk: _own, ...inventory } = whole.inventory
  const guard = createHostGuard({
    backend: { ...whole, inventory },
    deploymentId: 'test',
    limits: DEFAULT_LIMITS,
    host: { diskFloor: { bytes: 1_000, files: 0 } },
    makeRoom: async () => false,
    connected: () => [silent, honest],
    log: () => {},
  })
  guard.begin()
  try {
    await honest.sbxd.asked()
    const full = new ByteWriter().u64(0).u64(0).u32(0).u32(0).u64(0).u32(0).u32(0).u64(0).u64(0)
    full.u8(0).u8(1).u16(0).u32(0).u64(0).u64(0).u64(0).u64(0).u64(10_000).u64(10).u64(0).u64(0)
    honest.sbxd.say(FrameType.STAT_RESULT, 1, full.done())
    await expect.poll(() => guard.disk()).toMatchObject({ open: true, free: { bytes: 10 } })
  } finally {
    guard.close()
    await Promise.all([silent.sandbox.close(), honest.sandbox.close()])
  }
})

test('passes over facts of an end that it does not know', async () => {
  const { sbxd, sandbox } = await HostileSbxd.connect()
  const running = sandbox.run(request)
  sbxd.started()
  const command = await running
  sbxd.exit(0, 1, 1, undefined, Buffer.from([0x1f, 3, 0, 1, 2, 3]))
  expect(await command.exit).toMatchObject({ cause: 'exited', code: 0 })
  await sandbox.close()
})

test('a writer without credit waits, holds nothing back in memory, and rejects at the end', async () => {
  const { sbxd, sandbox } = await HostileSbxd.connect()
  const running = sandbox.run({ ...request, stdin: true })
  sbxd.started()
  const command = await running
  const writing = command.writeStdin(Buffer.alloc(1_000_000)).then(
    () => 'written',
    (error: unknown) => error,
  )
  // A limit that goes back is no limit.
  sbxd.say(FrameType.CREDIT, 1, new ByteWriter().u64(1_000).done())
  sbxd.say(FrameType.CREDIT, 1, new ByteWriter().u64(10).done())
  while (command.stdinOffset < 1_000) await new Promise((resolve) => setImmediate(resolve))
  expect(command.stdinOffset).toBe(1_000)
  await sandbox.close()
  expect(await writing).toMatchObject({ code: 'cancelled' })
})

/** Frames as a supervisor might send them, with numbers that it should not. */
const number = fc.oneof(
  fc.nat(20),
  fc.nat(70_000),
  fc.constantFrom(2 ** 31, 2 ** 32 - 1, Number.MAX_SAFE_INTEGER),
)
const fields = fc.array(fc.oneof(number, fc.constant(-1)), { minLength: 1, maxLength: 12 }).map((numbers) => {
  const writer = new ByteWriter()
  for (const value of numbers) writer.opaque64(BigInt.asUintN(64, BigInt(value)))
  return writer.done()
})
const payloads = fc.oneof(
  fc.constant(Buffer.alloc(0)),
  fields,
  fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
  fc.constant(new ByteWriter().u8(0).u32(7).u64(0).u64(0).u64(0).u64(99).done()),
)
const hostileFrame = fc.record({
  type: fc.oneof(
    fc.constantFrom(FrameType.STARTED, FrameType.DATA, FrameType.EXIT, FrameType.CREDIT),
    fc.nat(0xff),
  ),
  flags: fc.oneof(fc.nat(4), fc.nat(0xffff)),
  channel: fc.oneof(fc.nat(3), fc.constantFrom(0x8000_0001, 0xffff_ffff)),
  payload: payloads,
})

test('P12 any frames after the start end in a typed error or in nothing, never in a crash', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(hostileFrame, { maxLength: 25 }),
      fc.uint8Array({ maxLength: 30 }),
      async (frames, tail) => {
        const { sbxd, sandbox } = await HostileSbxd.connect()
        const pending = [
          sandbox.run({ ...request, stdin: true }).then(async (command) => {
            void command.writeStdin(Buffer.alloc(100)).catch(() => {})
            for await (const { data } of command.output) expect(data.length).toBeLessThanOrEqual(65_536)
            await command.exit
          }),
          sandbox.files.list(''),
          sandbox.commands(),
        ].map((work) =>
          work.then(
            () => undefined,
            (error: unknown) => error,
          ),
        )
        for (const { type, flags, channel, payload } of frames)
          sbxd.say(type as FrameType, channel, payload, flags)
        sbxd.raw(tail)
        await new Promise((resolve) => setImmediate(resolve))
        await sandbox.close()
        for (const outcome of await Promise.all(pending))
          expect(outcome === undefined || outcome instanceof SandboxError).toBe(true)
        await sandbox.closed
      },
    ),
    { numRuns: extent(200, 20_000) },
  )
}, 600_000)
