import { SandboxError } from '../errors.ts'
import { ByteWriter } from './protocol/bytes.ts'
import { StartOption } from './protocol/frames.ts'
import type { RunRequest } from '../sandbox.ts'
import { jobOption, sessionName, terminalSize } from './start-kinds.ts'

const SPOOL_AFTER_BYTES = 131_072
/** A command that ignores TERM at its timeout is killed this much later. */
const TIMEOUT_GRACE_MS = 250
const MOST_U32 = 0xffff_ffff

/** Head and tail of a cut output together: what sbxd keeps of one stream in any case. */
export const CUT_BYTES = 262_144
const LOWEST_PRIORITY = 19
/** Their places are their numbers in the protocol. */
const LIMITS = ['cpuSeconds', 'fileBytes', 'openFiles', 'addressSpaceBytes'] as const

/** The list at the end of START. Throws `invalid_arguments` for what sbxd would refuse. */
export function writeStartOptions(writer: ByteWriter, request: RunRequest): void {
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
