import { SandboxError } from '../errors.ts'
import type { ByteReader } from '../protocol/bytes.ts'
import type { CommandExit, ExitCause } from '../sandbox.ts'
import { signalName } from './signals.ts'

const CAUSES: Record<number, ExitCause> = {
  1: 'exited',
  2: 'signal',
  3: 'timeout',
  4: 'cancel',
  5: 'oom',
  6: 'output_limit',
  7: 'disk_quota',
  8: 'shim_killed',
}
const STATUS = { none: 0, code: 1, signal: 2 } as const

/** The payload of EXIT. */
export function readExit(reader: ByteReader, id: string, workspace: string): CommandExit {
  const cause = CAUSES[reader.u8()]
  const status = reader.u8()
  const spooled = (reader.u16() & 1) === 1
  const value = reader.u32()
  if (!cause || status > STATUS.signal)
    throw new SandboxError('protocol', 'sbxd ended a command in a way that does not exist')
  return {
    cause,
    ...(status === STATUS.code
      ? { code: value }
      : status === STATUS.signal
        ? { signal: signalName(value) }
        : {}),
    bytes: { stdout: reader.u64(), stderr: reader.u64() },
    userMs: reader.u64() / 1_000,
    systemMs: reader.u64() / 1_000,
    maxRssKb: reader.u64(),
    durationMs: reader.u64() / 1_000,
    ...(spooled ? { spoolFile: `${workspace}/.tool-outputs/${id}.txt` } : {}),
  }
}
