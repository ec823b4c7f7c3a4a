import { SandboxError } from '../errors.ts'
import { ByteWriter } from './protocol/bytes.ts'
import type { TerminalSize } from '../sandbox.ts'

const MOST_CELLS = 65_535
const SESSION_CHARACTERS = 64

/** Rows and columns as START and RESIZE carry them. Throws `invalid_arguments` for what is not a size. */
export function terminalSize({ rows, columns }: TerminalSize): ByteWriter {
  for (const cells of [rows, columns])
    if (!Number.isInteger(cells) || cells < 1 || cells > MOST_CELLS)
      throw new SandboxError('invalid_arguments', `A terminal has 1 to ${MOST_CELLS} rows and columns`)
  return new ByteWriter().u16(rows).u16(columns)
}

/** The greatest age of a background job in milliseconds; 0 leaves it to sbxd, which takes a day. */
export function jobOption(maxAgeMs: number | undefined): ByteWriter {
  if (maxAgeMs !== undefined && !(maxAgeMs > 0 && maxAgeMs <= 2 ** 40 - 1))
    throw new SandboxError('invalid_arguments', 'maxAgeMs must be more than 0')
  return new ByteWriter().u64(Math.ceil(maxAgeMs ?? 0))
}

/** A session's name. Throws `invalid_arguments` for one that sbxd would refuse. */
export function sessionName(name: string): ByteWriter {
  if (name.length > SESSION_CHARACTERS || !/^[!-~]+$/.test(name))
    throw new SandboxError(
      'invalid_arguments',
      `A session is named by 1 to ${SESSION_CHARACTERS} visible ASCII characters`,
    )
  return new ByteWriter().bytes(Buffer.from(name))
}
