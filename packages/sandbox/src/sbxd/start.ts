import { SandboxError } from '../errors.ts'
import { ByteWriter } from './protocol/bytes.ts'
import { FLAG, FrameType, MAX_PAYLOAD } from './protocol/frames.ts'
import type { CommandStream, RunRequest } from '../sandbox.ts'
import type { Link } from './link.ts'
import { writeStartOptions } from './start-options.ts'

const START_FLAG = { shell: 1, merge: 2, stdin: 4 } as const

/** What Linux allows for one argument or environment entry, with its end mark. */
const ARGUMENT_BYTES = 131_072
const REQUEST_BYTES = 1_048_576

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
  writeStartOptions(writer, request)
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

function checkText(what: string, text: string): void {
  if (text.includes('\0')) throw new SandboxError('invalid_arguments', `${what} contains a NUL character`)
  if (!text.isWellFormed())
    throw new SandboxError('invalid_arguments', `${what} contains half of a surrogate pair`)
  if (Buffer.byteLength(text) >= ARGUMENT_BYTES)
    throw new SandboxError('invalid_arguments', `${what} is longer than 128 KiB; put long text into a file`)
}
