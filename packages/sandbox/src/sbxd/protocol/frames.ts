/**
 * Names of the sbxd protocol and its frame header. `README.md` in this folder describes every frame
 * and payload; `docker/sandbox/src/wire/wire.h` mirrors these names.
 */

export const PROTOCOL_VERSION = 5
const FRAME_MAGIC = 0xa7
export const HEADER_BYTES = 16
export const MAX_PAYLOAD = 65_536
/** Longer than any frame: completes whatever sbxd was reading. */
export const RESYNC_BYTES = 65_600
const HEADER_CRC_START = 0x5b8d17e3
/** Start values for the checksums of a controller's frames, different for each session. */
export interface CrcStarts {
  header: number
  payload: number
}

export const HELLO_CRC: CrcStarts = { header: HEADER_CRC_START, payload: 0xa3c59ac3 }

export const FrameType = {
  HELLO: 0x01,
  WELCOME: 0x02,
  REFUSED: 0x03,
  DROPPED: 0x04,
  PING: 0x05,
  PONG: 0x06,
  STAT: 0x07,
  STAT_RESULT: 0x08,
  DISK_BUDGET: 0x09,
  DISK_STATE: 0x0a,
  START: 0x10,
  STARTED: 0x11,
  START_FAILED: 0x12,
  ATTACH: 0x13,
  DETACHED: 0x14,
  DATA: 0x15,
  CREDIT: 0x16,
  ACK: 0x17,
  EOF: 0x18,
  SIGNAL: 0x19,
  CANCEL: 0x1a,
  EXIT: 0x1b,
  COMMANDS: 0x1c,
  COMMAND_LIST: 0x1d,
  RESET: 0x1e,
  RESET_DONE: 0x1f,
  FILE_STAT: 0x20,
  FILE_LIST: 0x21,
  FILE_READ: 0x22,
  FILE_WRITE: 0x23,
  FILE_MKDIR: 0x24,
  FILE_REMOVE: 0x25,
  FILE_RENAME: 0x26,
  FILE_RESULT: 0x27,
  RESIZE: 0x28,
  FILE_RESOLVE: 0x29,
  FILE_WATCH: 0x2a,
  FILE_CHANGED: 0x2b,
  EGRESS_LISTEN: 0x30,
  EGRESS_OPEN: 0x31,
  EGRESS_RESULT: 0x32,
  CONNECTION_DATA: 0x33,
  CONNECTION_CREDIT: 0x34,
  CONNECTION_EOF: 0x35,
  CONNECTION_CLOSE: 0x36,
  EGRESS_REFUSED: 0x37,
  PORT_CONNECT: 0x38,
  PORT_RESULT: 0x39,
  PORT_LIST: 0x3a,
  PORT_LISTED: 0x3b,
  FILE_SNAPSHOT: 0x40,
  FILE_CHANGES: 0x41,
} as const
export type FrameType = (typeof FrameType)[keyof typeof FrameType]

export const FLAG = {
  /** HELLO carries the key. */
  INSTALL: 1,
  /** Another fragment or page follows. */
  MORE: 1,
  /** ATTACH: also to a command that was acknowledged. */
  ACKNOWLEDGED: 1,
  /** ACK: the EXIT is stored too. */
  EXIT: 1,
  BEGIN: 1,
  COMMIT: 2,
  ABORT: 4,
  RECURSIVE: 1,
  /** FILE_WRITE (first piece), FILE_RENAME: an error if the target exists. */
  NEW: 8,
  /** FILE_CHANGED: in any of the directories. */
  ALL: 1,
  /** Every file request: a symbolic link on the path is an error. */
  NO_LINKS: 0x8000,
  /** DISK_BUDGET: prevents all growth, whatever the budget. */
  FREEZE: 1,
} as const

/** Tags in the option list of START; 0x20–0x3f are for terminals and sessions. */
export const StartOption = {
  TIMEOUT: 0x01,
  SPOOL: 0x02,
  CUT: 0x03,
  LIMIT: 0x04,
  RLIMIT: 0x05,
  NICE: 0x06,
  TERMINAL: 0x20,
  BACKGROUND: 0x21,
  SESSION: 0x22,
  HOME: 0x23,
  PROFILE: 0x24,
} as const
export type StartOption = (typeof StartOption)[keyof typeof StartOption]

/** Tags in the list of further facts at the end of EXIT. */
export const ExitFact = { CUT: 0x01, RUSAGE: 0x02, OOM: 0x03, STOPPED: 0x04, SESSION: 0x22 } as const

export const STREAM = { stdin: 0, stdout: 1, stderr: 2 } as const

export interface FrameHeader {
  type: number
  flags: number
  channel: number
  /** Payload bytes, at most `MAX_PAYLOAD`. */
  length: number
}

/** The header at `at`, or undefined when these 16 bytes are not a header. */
export function readHeader(bytes: Buffer, at = 0): FrameHeader | undefined {
  if (bytes[at] !== FRAME_MAGIC) return undefined
  const length = bytes.readUInt32LE(at + 8)
  if (length > MAX_PAYLOAD || bytes.readUInt32LE(at + 12) !== crc32c(HEADER_CRC_START, bytes, at, at + 12))
    return undefined
  return {
    type: bytes.readUInt8(at + 1),
    flags: bytes.readUInt16LE(at + 2),
    channel: bytes.readUInt32LE(at + 4),
    length,
  }
}

function writeHeader(
  into: Buffer,
  type: number,
  flags: number,
  channel: number,
  length: number,
  crcStart: number,
): void {
  into[0] = FRAME_MAGIC
  into[1] = type
  into.writeUInt16LE(flags, 2)
  into.writeUInt32LE(channel, 4)
  into.writeUInt32LE(length, 8)
  into.writeUInt32LE(crc32c(crcStart, into, 0, 12), 12)
}

/** A whole frame to sbxd: header, payload (at most `MAX_PAYLOAD` bytes), checksum. */
export function encodeFrame(
  type: FrameType,
  flags: number,
  channel: number,
  payload: Uint8Array,
  crc: CrcStarts,
): Buffer {
  const frame = Buffer.allocUnsafe(HEADER_BYTES + payload.length + 4)
  writeHeader(frame, type, flags, channel, payload.length, crc.header)
  frame.set(payload, HEADER_BYTES)
  frame.writeUInt32LE(crc32c(crc.payload, payload), HEADER_BYTES + payload.length)
  return frame
}

/** A frame of sbxd's: without the payload's checksum. For tests that play sbxd. */
export function encodeOutwardFrame(
  type: FrameType,
  flags: number,
  channel: number,
  payload: Uint8Array,
): Buffer {
  const frame = Buffer.allocUnsafe(HEADER_BYTES + payload.length)
  writeHeader(frame, type, flags, channel, payload.length, HEADER_CRC_START)
  frame.set(payload, HEADER_BYTES)
  return frame
}

/** Start values of the session with this nonce. */
export function sessionCrc(nonce: Buffer): CrcStarts {
  return { header: (nonce.readUInt32LE(4) | 1) >>> 0, payload: (nonce.readUInt32LE(0) | 1) >>> 0 }
}

const CRC_TABLE = new Uint32Array(256)
for (let i = 0; i < 256; i++) {
  let c = i
  for (let bit = 0; bit < 8; bit++) c = c & 1 ? (c >>> 1) ^ 0x82f63b78 : c >>> 1
  CRC_TABLE[i] = c
}

/**
 * CRC-32C (Castagnoli) as a plain register: no inversion at either end, `start` is the caller's and
 * must not be zero, so that zeros never have the checksum zero.
 */
export function crc32c(start: number, bytes: Uint8Array, from = 0, to = bytes.length): number {
  let crc = start
  for (let i = from; i < to; i++) crc = (crc >>> 8) ^ (CRC_TABLE[(crc ^ (bytes[i] ?? 0)) & 255] ?? 0)
  return crc >>> 0
}
