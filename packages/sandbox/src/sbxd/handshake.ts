import { createHmac, randomBytes } from 'node:crypto'
import type { Duplex } from 'node:stream'

import { SandboxError } from '../errors.ts'
import { ByteReader, ByteWriter } from './protocol/bytes.ts'
import {
  type CrcStarts,
  encodeFrame,
  FLAG,
  FrameType,
  HEADER_BYTES,
  HELLO_CRC,
  PROTOCOL_VERSION,
  readHeader,
  RESYNC_BYTES,
  sessionCrc,
} from './protocol/frames.ts'

export interface Welcome {
  /** Hex. */
  bootId: string
  workspace: string
  /** sbxd is PID 1 of its own namespace. */
  isInit: boolean
  /** Commands that ask for the debug profile get it. An earlier sbxd would refuse to be asked. */
  mayTrace: boolean
  commands: ListedCommand[]
  /** For all later frames. */
  crc: CrcStarts
  nonce: Buffer
  /** Bytes read after the WELCOME. */
  rest: Buffer
}

/**
 * Called once when sbxd has seen a greater epoch than ours. Resolves with a still greater one, for
 * a controller that owns the sandbox, or with undefined to give way.
 */
export type NewerEpoch = (current: number) => Promise<number | undefined>

const NONCE_BYTES = 16
/** Time after which HELLO is repeated. */
const AGAIN_MS = 2_500
const WELCOME_FLAG = { init: 1, mayTrace: 2 } as const
const REFUSED = { noKey: 1, wrongKey: 2, oldEpoch: 3, version: 4 } as const

/** sbxd holds another key: it was installed by someone without ours. */
export class KeyRefused extends SandboxError {
  constructor() {
    super('protocol', 'The sandbox does not accept this key')
  }
}

/**
 * Sends HELLO until WELCOME. Everything before the answer with our nonce is ignored: it may be the
 * tail of a frame to an earlier controller. HELLO is repeated every `againMs` (default 2,500),
 * because another controller's simultaneous writes may swallow it; sbxd ignores a repeated one.
 * Rejects with `fenced` (old epoch, also that of `newerEpoch`), `protocol` (`KeyRefused`, other
 * version), `sandbox_lost` (the stream ended; or the `SandboxError` that ended it), `timeout` or
 * `cancelled`. The stream is then paused, without our listeners.
 */
export async function handshake(
  stream: Duplex,
  key: Uint8Array,
  firstEpoch: number,
  limits: {
    signal?: AbortSignal | undefined
    timeoutMs: number
    againMs?: number
    /** Installed with the key. */
    stateKey?: Uint8Array | undefined
    newerEpoch?: NewerEpoch | undefined
  },
): Promise<Welcome> {
  const nonce = randomBytes(NONCE_BYTES)
  let install = false
  let epoch = firstEpoch
  const sayHello = (): void => {
    stream.write(Buffer.alloc(RESYNC_BYTES))
    stream.write(hello(key, epoch, nonce, install && { stateKey: limits.stateKey }))
  }
  const again = setInterval(sayHello, limits.againMs ?? AGAIN_MS)
  try {
    sayHello()
    let answer = await findAnswer(stream, nonce, Buffer.alloc(0), limits)
    while (answer.type === FrameType.REFUSED) {
      const { reason, current } = readRefusal(answer.payload)
      // Each may arrive more than once when HELLO was repeated before the answer.
      if (reason === REFUSED.noKey) {
        if (!install) stream.write(hello(key, epoch, nonce, { stateKey: limits.stateKey }))
        install = true
      } else if (reason !== REFUSED.oldEpoch || current >= epoch) {
        const newer =
          reason === REFUSED.oldEpoch && epoch === firstEpoch ? await limits.newerEpoch?.(current) : undefined
        if (newer === undefined) throw refusedError(reason)
        epoch = newer
        sayHello()
      }
      answer = await findAnswer(stream, nonce, answer.rest, limits)
    }
    return readWelcome(answer.payload, nonce, answer.rest)
  } finally {
    clearInterval(again)
  }
}

function hello(
  key: Uint8Array,
  epoch: number,
  nonce: Buffer,
  install: false | { stateKey: Uint8Array | undefined },
): Buffer {
  const signed = new ByteWriter().bytes(Buffer.from('sandlot-sbxd-1\0\0')).bytes(nonce).u64(epoch).done()
  const mac = createHmac('sha256', key).update(signed).digest()
  const payload = new ByteWriter().u16(PROTOCOL_VERSION).u64(epoch).bytes(nonce).bytes(mac)
  if (install) payload.bytes(key).bytes(install.stateKey ?? new Uint8Array())
  return encodeFrame(FrameType.HELLO, install ? FLAG.INSTALL : 0, 0, payload.done(), HELLO_CRC)
}

interface Answer {
  type: number
  payload: Buffer
  rest: Buffer
}

/**
 * The WELCOME or REFUSED with our nonce in `bytes`, or the position from which more bytes are
 * needed.
 */
function scan(bytes: Buffer, nonce: Buffer): Answer | number {
  for (let at = 0; ; at += 1) {
    at = bytes.indexOf(0xa7, at)
    if (at === -1) return bytes.length
    if (bytes.length - at < HEADER_BYTES) return at
    const header = readHeader(bytes, at)
    // Bytes of an old frame may look like a header: only a whole match counts, and its length skips
    // nothing.
    if (
      !header ||
      header.length < NONCE_BYTES ||
      (header.type !== FrameType.WELCOME && header.type !== FrameType.REFUSED)
    )
      continue
    const body = at + HEADER_BYTES
    const seen = bytes.subarray(body, body + NONCE_BYTES)
    if (!nonce.subarray(0, seen.length).equals(seen)) continue
    if (bytes.length - body < header.length) return at
    const end = body + header.length
    return { type: header.type, payload: bytes.subarray(body, end), rest: bytes.subarray(end) }
  }
}

function findAnswer(
  stream: Duplex,
  nonce: Buffer,
  already: Buffer,
  { signal, timeoutMs }: { signal?: AbortSignal | undefined; timeoutMs: number },
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    let bytes = already
    const settle = (act: () => void): void => {
      clearTimeout(timer)
      stream.pause()
      stream.off('data', onData).off('error', onEnd).off('end', onEnd).off('close', onEnd)
      signal?.removeEventListener('abort', onAbort)
      act()
    }
    const search = (): void => {
      const found = scan(bytes, nonce)
      if (typeof found === 'number') bytes = bytes.subarray(found)
      else settle(() => resolve(found))
    }
    const onData = (chunk: Buffer): void => {
      bytes = bytes.length ? Buffer.concat([bytes, chunk]) : chunk
      search()
    }
    const onEnd = (cause?: unknown): void =>
      settle(() =>
        reject(
          cause instanceof SandboxError
            ? cause
            : new SandboxError('sandbox_lost', 'The sandbox closed the stream before it answered', { cause }),
        ),
      )
    const onAbort = (): void =>
      settle(() => reject(new SandboxError('cancelled', 'Connecting to the sandbox was cancelled')))
    const timer = setTimeout(
      () =>
        settle(() =>
          reject(new SandboxError('timeout', `The sandbox did not answer within ${timeoutMs} ms`)),
        ),
      timeoutMs,
    )
    stream.on('data', onData).on('error', onEnd).on('end', onEnd).on('close', onEnd)
    stream.resume()
    signal?.addEventListener('abort', onAbort)
    if (signal?.aborted) onAbort()
    else if (stream.destroyed) onEnd(stream.errored)
    else search()
  })
}

/** `current`: the greatest epoch that sbxd has seen. */
function readRefusal(payload: Buffer): { reason: number; current: number } {
  const reader = new ByteReader(payload)
  reader.bytes(NONCE_BYTES)
  const reason = reader.u8()
  return { reason, current: reason === REFUSED.oldEpoch ? reader.u64() : 0 }
}

function refusedError(reason: number): SandboxError {
  if (reason === REFUSED.oldEpoch)
    return new SandboxError('fenced', 'A newer controller has taken this sandbox over')
  if (reason === REFUSED.version)
    return new SandboxError(
      'protocol',
      'The sandbox speaks another version of the protocol; rebuild its image',
    )
  return new KeyRefused()
}

function readWelcome(payload: Buffer, nonce: Buffer, rest: Buffer): Welcome {
  const reader = new ByteReader(payload)
  reader.bytes(NONCE_BYTES)
  const bootId = reader.bytes(16).toString('hex')
  if (reader.u16() !== PROTOCOL_VERSION) throw refusedError(REFUSED.version)
  const flags = reader.u16()
  reader.u64()
  reader.u32()
  reader.u32()
  const workspace = reader.text()
  return {
    bootId,
    workspace,
    isInit: (flags & WELCOME_FLAG.init) !== 0,
    mayTrace: (flags & WELCOME_FLAG.mayTrace) !== 0,
    commands: readCommandList(reader),
    crc: sessionCrc(nonce),
    nonce,
    rest,
  }
}

interface ListedCommand {
  id: string
  state: 'running' | 'ended'
  background: boolean
  terminal: boolean
}

const MOST = 4_096

/** Parses the list of commands in WELCOME and COMMAND_LIST. */
export function readCommandList(reader: ByteReader): ListedCommand[] {
  const count = reader.u32()
  if (count > MOST) throw new SandboxError('protocol', 'sbxd lists more commands than it may have')
  const commands: ListedCommand[] = []
  for (let i = 0; i < count; i += 1) {
    const id = reader.bytes(16).toString('hex')
    const state = reader.u8() === 0 ? 'running' : 'ended'
    reader.bytes(24)
    const more = new ByteReader(reader.bytes(reader.u16()))
    const kind = more.left > 0 ? more.u8() : 0
    commands.push({ id, state, background: (kind & 1) === 1, terminal: (kind & 2) === 2 })
  }
  return commands
}
