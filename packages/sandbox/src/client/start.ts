import { SandboxError } from '../errors.ts'
import { ByteWriter } from '../protocol/bytes.ts'
import { FLAG, FrameType, MAX_PAYLOAD } from '../protocol/frames.ts'
import type { CommandStream, RunRequest } from '../sandbox.ts'
import type { Link } from './link.ts'

const OPTION = { shell: 1, merge: 2, stdin: 4, spool: 8 } as const

/** What Linux allows for one argument or environment entry, with its end mark. */
const ARGUMENT_BYTES = 131_072
const REQUEST_BYTES = 1_048_576
const SPOOL_AFTER_BYTES = 131_072
/** A command that ignores TERM at its timeout is killed this much later. */
const TIMEOUT_GRACE_MS = 250
const LONGEST_MS = 0xffff_ffff

/** Throws `invalid_arguments` for an id that is not 32 lower-case hex digits. */
export function idBytes(id: string): Buffer {
  if (!/^[0-9a-f]{32}$/.test(id))
    throw new SandboxError('invalid_arguments', `"${id}" is not a command id: 32 lower-case hex digits`)
  return Buffer.from(id, 'hex')
}

/** The payload of START. Throws `invalid_arguments` for what could not be passed on unchanged. */
export function encodeStart(
  request: RunRequest,
  bootId: string,
  limits: Record<CommandStream, number>,
): Buffer {
  const { command, spool } = request
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
  if (spool && !(spool.afterBytes >= 0 && spool.afterBytes <= SPOOL_AFTER_BYTES)) {
    throw new SandboxError('invalid_arguments', `spool.afterBytes must be between 0 and ${SPOOL_AFTER_BYTES}`)
  }
  const options =
    (shell ? OPTION.shell : 0) |
    (request.merge ? OPTION.merge : 0) |
    (request.stdin ? OPTION.stdin : 0) |
    (spool ? OPTION.spool : 0)
  const writer = new ByteWriter()
    .bytes(idBytes(bootId))
    .bytes(idBytes(request.id))
    .u16(options)
    .u32(milliseconds(request.timeoutMs))
    .u32(TIMEOUT_GRACE_MS)
    .u64(limits.stdout)
    .u64(limits.stderr)
    .u32(Math.trunc(spool?.afterBytes ?? 0))
    .u32(Math.min(Math.trunc(spool?.maxBytes ?? 0), 0xffff_ffff))
    .text(request.cwd ?? '')
    .u32(argv.length)
  for (const argument of argv) writer.text(argument)
  writer.u32(env.length)
  for (const [name, value] of env) writer.text(`${name}=${value}`)
  const payload = writer.done()
  if (payload.length > REQUEST_BYTES)
    throw new SandboxError(
      'invalid_arguments',
      'The command and its environment are longer than 1 MiB; put long text into a file',
    )
  return payload
}

/** Send START, in pieces if it is longer than a frame. */
export function sendStart(link: Link, channel: number, payload: Buffer): void {
  for (let at = 0; ; at += MAX_PAYLOAD) {
    const last = at + MAX_PAYLOAD >= payload.length
    link.send(FrameType.START, last ? 0 : FLAG.MORE, channel, payload.subarray(at, at + MAX_PAYLOAD))
    if (last) return
  }
}

function milliseconds(timeoutMs: number | undefined): number {
  if (timeoutMs === undefined) return 0
  if (!(timeoutMs > 0)) throw new SandboxError('invalid_arguments', 'timeoutMs must be more than 0')
  return Math.min(Math.ceil(timeoutMs), LONGEST_MS)
}

function checkText(what: string, text: string): void {
  if (text.includes('\0')) throw new SandboxError('invalid_arguments', `${what} contains a NUL character`)
  if (!text.isWellFormed())
    throw new SandboxError('invalid_arguments', `${what} contains half of a surrogate pair`)
  if (Buffer.byteLength(text) >= ARGUMENT_BYTES)
    throw new SandboxError('invalid_arguments', `${what} is longer than 128 KiB; put long text into a file`)
}
