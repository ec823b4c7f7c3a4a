import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { encodeStart } from '../../src/sbxd/start.ts'
import { ByteWriter } from '../../src/sbxd/protocol/bytes.ts'
import { FLAG, FrameType, STREAM } from '../../src/sbxd/protocol/frames.ts'
import type { RunRequest } from '../../src/sandbox.ts'

/** The operations of docker/sandbox/fuzz/fuzz.c. */
const OP = {
  frame: 0,
  raw: 1,
  report: 2,
  print: 3,
  die: 4,
  time: 5,
  hear: 6,
  hello: 7,
  connect: 8,
  reap: 9,
  kept: 10,
}
/** Boot id of the fuzzer's supervisor. */
const BOOT = '42'.repeat(16)
const SHIM = { started: 1, failed: 2, exited: 3, gone: 4 }

const frame = (type: number, channel: number, payload: Uint8Array, flags = 0): Buffer =>
  new ByteWriter()
    .u8(OP.frame)
    .u8(type)
    .u16(payload.length + 2)
    .u8(flags)
    .u8(channel)
    .bytes(payload)
    .done()
const operation = (op: number, which = 0): Buffer => Buffer.from([op, which])
const report = (which: number, event: number, value: number, stage = 0): Buffer =>
  new ByteWriter().u8(OP.report).u8(which).u16(9).u8(event).u32(value).u32(stage).done()
const print = (which: number, stream: number, bytes: number): Buffer =>
  new ByteWriter().u8(OP.print).u8(which).u8(stream).u16(bytes).done()

function start(channel: number, change: Partial<RunRequest> = {}, mayTrace = false): Buffer {
  const id = channel.toString(16).padStart(32, '0')
  const limits = { stdout: 90_000, stderr: 90_000 }
  const payload = encodeStart({ id, command: 'x', ...change }, BOOT, limits, mayTrace)
  return frame(FrameType.START, channel, payload)
}

const begun = (channel: number, change?: Partial<RunRequest>): Buffer[] => [
  start(channel, change),
  report(0, SHIM.started, 7),
]
const ended = [report(0, SHIM.exited, 0), report(0, SHIM.gone, 0), operation(OP.die), operation(OP.reap)]
const offsets = (...values: number[]): Buffer => {
  const writer = new ByteWriter()
  for (const value of values) writer.u64(value)
  return writer.done()
}
const path = (text: string): ByteWriter => new ByteWriter().text(text)

/**
 * By name: what a controller, a shim and a command say to each other when all goes well, and a
 * little when not.
 */
const SEEDS: Record<string, Buffer[]> = {
  command: [
    ...begun(1),
    print(0, 0, 100),
    print(0, 1, 50),
    ...ended,
    frame(FrameType.ACK, 1, offsets(100, 50), FLAG.EXIT),
  ],
  remembered: [
    ...begun(1),
    print(0, 0, 100),
    ...ended,
    frame(FrameType.ACK, 1, offsets(100, 0), FLAG.EXIT),
    start(1),
    start(1, { command: 'y' }),
    operation(OP.hello, 5),
    frame(
      FrameType.ATTACH,
      2,
      new ByteWriter()
        .bytes(Buffer.from('1'.padStart(32, '0'), 'hex'))
        .bytes(offsets(100, 0, 99_999, 99_999))
        .done(),
      FLAG.ACKNOWLEDGED,
    ),
    frame(FrameType.PING, 0, offsets(2)),
  ],
  cut: [
    ...begun(1, { policy: { kind: 'cut', head: 10, tail: 20 }, spool: { afterBytes: 50, maxBytes: 1_000 } }),
    print(0, 0, 60_000),
    ...ended,
    operation(OP.hello, 5),
    frame(
      FrameType.ATTACH,
      2,
      new ByteWriter()
        .bytes(Buffer.from('1'.padStart(32, '0'), 'hex'))
        .bytes(offsets(5, 0, 99_999, 99_999))
        .done(),
    ),
    frame(FrameType.ACK, 2, offsets(60_000, 0), FLAG.EXIT),
  ],
  limit: [
    ...begun(1, { policy: { kind: 'limit', bytes: 100 }, limits: { openFiles: 9, nice: 3 }, merge: true }),
    print(0, 0, 101),
    ...ended,
  ],
  stdin: [
    ...begun(1, { stdin: true, timeoutMs: 500, env: { A: 'b' }, cwd: 'x' }),
    frame(FrameType.DATA, 1, new ByteWriter().u64(0).bytes(Buffer.from('hello')).done(), STREAM.stdin),
    frame(FrameType.EOF, 1, offsets(5), STREAM.stdin),
    frame(FrameType.CREDIT, 1, offsets(200_000, 200_000)),
    operation(OP.time, 30),
    ...ended,
  ],
  signals: [
    ...begun(1),
    frame(FrameType.SIGNAL, 1, new ByteWriter().u32(2).u8(1).done()),
    frame(FrameType.CANCEL, 1, new ByteWriter().u32(50).done()),
    operation(OP.time, 200),
    operation(OP.die),
    operation(OP.reap),
    frame(FrameType.RESET, 2, Buffer.alloc(0)),
    frame(FrameType.COMMANDS, 3, Buffer.alloc(0)),
    frame(FrameType.PING, 0, Buffer.from('x')),
  ],
  refused: [start(1), report(0, SHIM.failed, 2, 7), operation(OP.die), operation(OP.reap)],
  traced: [start(1, {}, true), report(0, SHIM.started, 7), ...ended],
  pieces: [
    frame(FrameType.START, 1, Buffer.alloc(40, 0x42), FLAG.MORE),
    frame(FrameType.START, 1, Buffer.alloc(40)),
    operation(OP.hello, 9),
  ],
  files: [
    frame(FrameType.FILE_MKDIR, 1, path('a/b').done()),
    frame(
      FrameType.FILE_WRITE,
      2,
      new ByteWriter().u32(1).u64(0).text('a/f').bytes(Buffer.from('bytes')).done(),
      FLAG.BEGIN | FLAG.COMMIT,
    ),
    frame(FrameType.FILE_READ, 3, path('a/f').u64(0).u32(100).done()),
    frame(FrameType.FILE_STAT, 4, path('a/f').done()),
    frame(FrameType.FILE_LIST, 5, path('a').u64(0).done()),
    frame(FrameType.FILE_SNAPSHOT, 1, new ByteWriter().u32(1).done()),
    frame(FrameType.FILE_RENAME, 6, path('a/f').text('a/g').done()),
    frame(
      FrameType.FILE_WRITE,
      2,
      new ByteWriter().u32(2).u64(0).text('a/g').done(),
      FLAG.BEGIN | FLAG.COMMIT | FLAG.NEW,
    ),
    frame(FrameType.FILE_RENAME, 6, path('a/g').text('a/h').done(), FLAG.NEW),
    frame(FrameType.FILE_REMOVE, 7, path('a').done(), FLAG.RECURSIVE),
    frame(FrameType.FILE_CHANGES, 1, new ByteWriter().u32(1).done()),
    operation(OP.hello, 7),
  ],
  watched: [
    frame(FrameType.FILE_MKDIR, 1, path('w').done()),
    frame(FrameType.FILE_WATCH, 2, new ByteWriter().u32(1).text('w').text('').text('none').done()),
    operation(OP.time, 30),
    frame(FrameType.FILE_MKDIR, 3, path('w/x').done()),
    operation(OP.time, 200),
    operation(OP.time, 2_000),
    frame(FrameType.FILE_REMOVE, 4, path('w').done(), FLAG.RECURSIVE),
    operation(OP.time, 2_000),
    frame(FrameType.FILE_WATCH, 5, new ByteWriter().u32(2).text('').done()),
    operation(OP.hello, 7),
  ],
  kept: [
    new ByteWriter()
      .u8(OP.kept)
      .u8(0)
      .u16(28)
      .u8(1)
      .bytes(Buffer.from('s'))
      .u32(22)
      .bytes(Buffer.from('/tmp\0A=1\0LANG\0PATH=/x\0'))
      .done(),
    ...begun(1, { session: 's' }),
    start(2, { session: 't', home: 'x' }),
    ...ended,
  ],
  egress: [
    frame(FrameType.EGRESS_LISTEN, 1, new ByteWriter().u16(3128).u16(8).u32(5_000).done()),
    operation(OP.connect),
    operation(OP.hear),
    new ByteWriter().u8(OP.connect).u8(1).u16(4).bytes(Buffer.from('GET ')).done(),
    frame(FrameType.EGRESS_RESULT, 0x81, Buffer.alloc(16)),
    frame(FrameType.CONNECTION_DATA, 0x81, new ByteWriter().u64(0).bytes(Buffer.from('answer')).done()),
    frame(FrameType.CONNECTION_CREDIT, 0x81, offsets(1_000)),
    frame(FrameType.CONNECTION_EOF, 0x81, offsets(6)),
    frame(FrameType.CONNECTION_CLOSE, 0x81, Buffer.alloc(0)),
  ],
  ports: [
    frame(FrameType.EGRESS_LISTEN, 1, new ByteWriter().u16(3128).u16(8).u32(5_000).done()),
    frame(FrameType.PORT_CONNECT, 2, new ByteWriter().u16(8000).u64(100_000).done()),
    operation(OP.hear),
    frame(FrameType.CONNECTION_DATA, 2, new ByteWriter().u64(0).bytes(Buffer.from('GET /')).done()),
    operation(OP.hear),
    frame(FrameType.CONNECTION_CREDIT, 2, offsets(200_000)),
    frame(FrameType.CONNECTION_EOF, 2, offsets(5)),
    frame(FrameType.CONNECTION_CLOSE, 2, Buffer.alloc(0)),
    frame(FrameType.PORT_LIST, 3, Buffer.alloc(0)),
  ],
  state: [
    frame(FrameType.STAT, 1, Buffer.alloc(0)),
    ...[0x09, 0x0a, 0x0b].map((type) => frame(type, 2, offsets(1 << 20, 1_000))),
    ...begun(3, { stdin: true }),
    frame(FrameType.RESIZE, 3, new ByteWriter().u16(24).u16(80).done()),
  ],
  noise: [
    new ByteWriter()
      .u8(OP.raw)
      .u8(0)
      .u16(40)
      .bytes(Buffer.from('{"stream":true,"stdin":true,"stdout":1}\n'))
      .done(),
    ...begun(1),
    operation(OP.hello, 3),
  ],
}

/** Write the inputs that the fuzzer begins with into this folder. Returns how many. */
export async function writeFuzzSeeds(folder: string): Promise<number> {
  await mkdir(folder, { recursive: true })
  for (const [name, parts] of Object.entries(SEEDS)) await writeFile(join(folder, name), Buffer.concat(parts))
  return Object.keys(SEEDS).length
}
