import { SandboxError } from '../errors.ts'
import { ByteWriter } from './protocol/bytes.ts'
import { FLAG, FrameType, MAX_PAYLOAD, StartOption } from './protocol/frames.ts'
import type { CommandStream, RunRequest, TerminalSize } from '../sandbox.ts'
import type { Link } from './link.ts'

const START_FLAG = { shell: 1, merge: 2, stdin: 4 } as const

/** Linux's maximum for one argument or environment entry, with its terminator. */
const ARGUMENT_BYTES = 131_072
const REQUEST_BYTES = 1_048_576

/** Throws `invalid_arguments` for an id that is not 32 lower-case hex digits. */
export function idBytes(id: string): Buffer {
  if (!/^[0-9a-f]{32}$/.test(id))
    throw new SandboxError('invalid_arguments', `"${id}" is not a command id: 32 lower-case hex digits`)
  return Buffer.from(id, 'hex')
}

/**
 * Encodes the payload of START. Throws `invalid_arguments` for values that cannot be passed on
 * unchanged.
 */
export function encodeStart(
  request: RunRequest,
  bootId: string,
  limits: Record<CommandStream, number>,
  mayTrace = false,
): Buffer {
  const { command } = request
  const shell = typeof command === 'string'
  const argv = shell ? [command] : command
  const env = Object.entries(request.env ?? {})
  if (argv.length === 0) throw new SandboxError('invalid_arguments', 'The command is empty')
  for (const argument of argv) checkText('The command', argument)
  for (const [name, value] of env) {
    if (name === '' || name.includes('='))
      throw new SandboxError('invalid_arguments', `"${name}" is not a name of an environment variable`)
    checkText(`The environment variable ${name}`, `${name}=${value}`)
  }
  checkText('The working directory', request.cwd ?? '')
  checkText('The home of the session', request.home ?? '')
  const flags =
    (shell ? START_FLAG.shell : 0) |
    (request.merge ? START_FLAG.merge : 0) |
    (request.stdin ? START_FLAG.stdin : 0)
  const writer = new ByteWriter()
    .bytes(idBytes(bootId))
    .bytes(idBytes(request.id))
    .u16(flags)
    .u64(limits.stdout)
    .u64(limits.stderr)
    .text(request.cwd ?? '')
    .u32(argv.length)
  for (const argument of argv) writer.text(argument)
  writer.u32(env.length)
  for (const [name, value] of env) writer.text(`${name}=${value}`)
  writeStartOptions(writer, request, mayTrace)
  const payload = writer.done()
  if (payload.length > REQUEST_BYTES)
    throw new SandboxError(
      'invalid_arguments',
      'The command and its environment are longer than 1 MiB; put long text into a file',
    )
  return payload
}

/** Sends START, in pieces if it is longer than a frame. */
export function sendStart(link: Link, channel: number, payload: Buffer): void {
  for (let at = 0; ; at += MAX_PAYLOAD) {
    const last = at + MAX_PAYLOAD >= payload.length
    link.send(FrameType.START, last ? 0 : FLAG.MORE, channel, payload.subarray(at, at + MAX_PAYLOAD))
    if (last) return
  }
}

function checkText(what: string, text: string): void {
  if (text.includes('\0')) throw new SandboxError('invalid_arguments', `${what} contains a NUL character`)
  if (!text.isWellFormed())
    throw new SandboxError('invalid_arguments', `${what} contains half of a surrogate pair`)
  if (Buffer.byteLength(text) >= ARGUMENT_BYTES)
    throw new SandboxError('invalid_arguments', `${what} is longer than 128 KiB; put long text into a file`)
}

const SPOOL_AFTER_BYTES = 131_072
/** Delay of KILL for a command that ignores TERM at its timeout. */
const TIMEOUT_GRACE_MS = 250
const MOST_U32 = 0xffff_ffff

/** Head and tail of a cut output together: what sbxd always stores of one stream. */
export const CUT_BYTES = 262_144
const LOWEST_PRIORITY = 19
const PROFILE_DEBUG = 1
/** Indices are the numbers in the protocol. */
const LIMITS = ['cpuSeconds', 'fileBytes', 'openFiles', 'addressSpaceBytes'] as const

/** The list at the end of START. Throws `invalid_arguments` for values that sbxd would refuse. */
function writeStartOptions(writer: ByteWriter, request: RunRequest, mayTrace: boolean): void {
  const option = (tag: StartOption, value: ByteWriter): void => {
    const bytes = value.done()
    writer.u8(tag).u16(bytes.length).bytes(bytes)
  }
  if (request.timeoutMs !== undefined)
    option(StartOption.TIMEOUT, new ByteWriter().u32(milliseconds(request.timeoutMs)).u32(TIMEOUT_GRACE_MS))
  if (request.spool) option(StartOption.SPOOL, spoolOption(request.spool))
  const { policy, limits } = request
  if (policy?.kind === 'cut') {
    if (count('policy.head', policy.head) + count('policy.tail', policy.tail) > CUT_BYTES)
      throw new SandboxError(
        'invalid_arguments',
        `policy.head and policy.tail together are at most ${CUT_BYTES}`,
      )
    option(StartOption.CUT, new ByteWriter().u32(policy.head).u32(policy.tail))
  }
  if (policy?.kind === 'limit')
    option(StartOption.LIMIT, new ByteWriter().u64(count('policy.bytes', policy.bytes)))
  for (const [kind, name] of LIMITS.entries()) {
    const most = limits?.[name]
    if (most !== undefined)
      option(StartOption.RLIMIT, new ByteWriter().u8(kind).u64(count(`limits.${name}`, most)))
  }
  if (limits?.nice !== undefined) {
    if (count('limits.nice', limits.nice) > LOWEST_PRIORITY)
      throw new SandboxError('invalid_arguments', `limits.nice is at most ${LOWEST_PRIORITY}`)
    option(StartOption.NICE, new ByteWriter().u8(limits.nice))
  }
  if (request.terminal) option(StartOption.TERMINAL, terminalSize(request.terminal))
  if (request.background) option(StartOption.BACKGROUND, jobOption(request.maxAgeMs))
  if (request.session !== undefined) option(StartOption.SESSION, sessionName(request.session))
  if (request.home !== undefined) option(StartOption.HOME, new ByteWriter().bytes(Buffer.from(request.home)))
  if (mayTrace) option(StartOption.PROFILE, new ByteWriter().u8(PROFILE_DEBUG))
}

function milliseconds(timeoutMs: number): number {
  if (!(timeoutMs > 0)) throw new SandboxError('invalid_arguments', 'timeoutMs must be more than 0')
  return Math.min(Math.ceil(timeoutMs), MOST_U32)
}

function count(name: string, value: number): number {
  if (!Number.isSafeInteger(value) || value < 0)
    throw new SandboxError('invalid_arguments', `${name} must be a whole number, not ${value}`)
  return value
}

function spoolOption({ afterBytes, maxBytes }: NonNullable<RunRequest['spool']>): ByteWriter {
  if (!(afterBytes >= 0 && afterBytes <= SPOOL_AFTER_BYTES)) {
    throw new SandboxError('invalid_arguments', `spool.afterBytes must be between 0 and ${SPOOL_AFTER_BYTES}`)
  }
  return new ByteWriter().u32(Math.trunc(afterBytes)).u32(Math.min(Math.trunc(maxBytes), MOST_U32))
}

const MOST_CELLS = 65_535
const SESSION_CHARACTERS = 64

/**
 * Encodes rows and columns for START and RESIZE. Throws `invalid_arguments` for an invalid size.
 */
export function terminalSize({ rows, columns }: TerminalSize): ByteWriter {
  for (const cells of [rows, columns])
    if (!Number.isInteger(cells) || cells < 1 || cells > MOST_CELLS)
      throw new SandboxError('invalid_arguments', `A terminal has 1 to ${MOST_CELLS} rows and columns`)
  return new ByteWriter().u16(rows).u16(columns)
}

/** Maximum age of a background job in milliseconds; 0 selects sbxd's default, a day. */
function jobOption(maxAgeMs: number | undefined): ByteWriter {
  if (maxAgeMs !== undefined && !(maxAgeMs > 0 && maxAgeMs <= 2 ** 40 - 1))
    throw new SandboxError('invalid_arguments', 'maxAgeMs must be more than 0')
  return new ByteWriter().u64(Math.ceil(maxAgeMs ?? 0))
}

/** A session's name. Throws `invalid_arguments` for one that sbxd would refuse. */
function sessionName(name: string): ByteWriter {
  if (name.length > SESSION_CHARACTERS || !/^[!-~]+$/.test(name))
    throw new SandboxError(
      'invalid_arguments',
      `A session is named by 1 to ${SESSION_CHARACTERS} visible ASCII characters`,
    )
  return new ByteWriter().bytes(Buffer.from(name))
}
