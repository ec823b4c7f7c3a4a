import { SandboxError } from '../errors.ts'
import { ByteReader } from './protocol/bytes.ts'
import { ExitFact } from './protocol/frames.ts'
import type { CommandExit, ExitCause } from '../sandbox.ts'
import { signalName } from './signals.ts'
import { CUT_BYTES } from './start.ts'

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
const STREAMS = ['stdout', 'stderr'] as const
const STATUS = { none: 0, code: 1, signal: 2 } as const

/** Parses the payload of EXIT. Unknown facts are skipped. */
export function readExit(reader: ByteReader, id: string, workspace: string): CommandExit {
  const cause = CAUSES[reader.u8()]
  const status = reader.u8()
  const spooled = (reader.u16() & 1) === 1
  const value = reader.u32()
  if (!cause || status > STATUS.signal)
    throw new SandboxError('protocol', 'sbxd ended a command in a way that does not exist')
  const exit: CommandExit = {
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
    sha256: { stdout: '', stderr: '' },
  }
  reader.u64()
  if (spooled) exit.spoolFile = `${workspace}/.tool-outputs/${id}.txt`
  for (const stream of STREAMS) exit.sha256[stream] = reader.bytes(32).toString('hex')
  while (reader.left > 0) readFact(exit, reader.u8(), new ByteReader(reader.bytes(reader.u16())))
  return exit
}

/** In the order of their numbers. */
const SESSION_OUTCOMES = ['unchanged', 'kept', 'refused'] as const

function readFact(exit: CommandExit, tag: number, fact: ByteReader): void {
  if (tag === ExitFact.CUT) exit.cut = readGaps(exit, fact)
  if (tag === ExitFact.OOM) exit.oomKills = fact.u32()
  if (tag === ExitFact.STOPPED) exit.stopped = { processes: fact.u32(), tookMs: fact.u64() / 1_000 }
  if (tag === ExitFact.SESSION) exit.session = SESSION_OUTCOMES[fact.u8()] ?? 'refused'
  if (tag === ExitFact.RUSAGE)
    exit.usage = {
      minorFaults: fact.u64(),
      majorFaults: fact.u64(),
      blocksRead: fact.u64(),
      blocksWritten: fact.u64(),
      voluntarySwitches: fact.u64(),
      involuntarySwitches: fact.u64(),
    }
}

function readGaps(exit: CommandExit, fact: ByteReader): NonNullable<CommandExit['cut']> {
  const cut: NonNullable<CommandExit['cut']> = {}
  for (const stream of STREAMS) {
    const gap = { from: fact.u64(), to: fact.u64() }
    // Both stored parts were bounded by the request, so they can be granted at once.
    if (
      gap.from > gap.to ||
      gap.to > exit.bytes[stream] ||
      gap.from + exit.bytes[stream] - gap.to > CUT_BYTES
    )
      throw new SandboxError('protocol', 'sbxd cut an output in a way that cannot be')
    if (gap.to > gap.from) cut[stream] = gap
  }
  return cut
}
