import type { ByteReader } from './protocol/bytes.ts'
import { ByteWriter } from './protocol/bytes.ts'
import type { DiskBudget, DiskState, SandboxStat } from '../sandbox.ts'

const FLAG = { over: 1, frozen: 2, hostLow: 4 } as const
const COUNTED_BY = ['nobody', 'walk', 'file_system'] as const
const NEVER = 0xffff_ffff

/** Encodes the payload of DISK_BUDGET; `freeze` is a flag of the frame. */
export function encodeBudget(budget: DiskBudget): Buffer {
  return new ByteWriter()
    .u64(budget.bytes)
    .u64(budget.entries)
    .u64(budget.hostFloor?.bytes ?? 0)
    .u64(budget.hostFloor?.files ?? 0)
    .done()
}

/** Parses the payload of DISK_STATE. */
export function readDiskState(reader: ByteReader): DiskState {
  const { flags, countedBy } = readHead(reader)
  return {
    over: (flags & FLAG.over) !== 0,
    frozen: (flags & FLAG.frozen) !== 0,
    hostLow: (flags & FLAG.hostLow) !== 0,
    countedBy,
    bytes: reader.u64(),
    entries: reader.u64(),
    budget: { bytes: reader.u64(), entries: reader.u64() },
  }
}

function readHead(reader: ByteReader): { flags: number; countedBy: DiskState['countedBy'] } {
  const flags = reader.u8()
  const countedBy = COUNTED_BY[reader.u8()] ?? 'nobody'
  reader.u16()
  return { flags, countedBy }
}

/** Parses the payload of STAT_RESULT. Unset or unknown limits are omitted. */
export function readStat(reader: ByteReader): SandboxStat {
  const memory = { bytes: reader.u64(), ...limit(reader.u64()) }
  const processes = { count: reader.u32(), ...limit(reader.u32()) }
  const load = { cpuMs: reader.u64() / 1_000, runnable: reader.u32(), commands: reader.u32() }
  const scratch = { bytes: reader.u64(), ...limit(reader.u64()) }
  const { flags, countedBy } = readHead(reader)
  const age = reader.u32()
  const bytes = reader.u64()
  const mostBytes = reader.u64()
  const entries = reader.u64()
  const mostEntries = reader.u64()
  return {
    memory,
    processes,
    load,
    scratch,
    disk: {
      over: (flags & FLAG.over) !== 0,
      frozen: (flags & FLAG.frozen) !== 0,
      hostLow: (flags & FLAG.hostLow) !== 0,
      countedBy,
      bytes,
      entries,
      budget: { bytes: mostBytes, entries: mostEntries },
      ...(age === NEVER ? {} : { ageMs: age }),
    },
    fileSystem: {
      bytes: reader.u64(),
      freeBytes: reader.u64(),
      files: reader.u64(),
      freeFiles: reader.u64(),
    },
  }
}

function limit(value: number): { limit?: number } {
  return value === 0 ? {} : { limit: value }
}
