import { SandboxError } from '../errors.ts'
import type { ByteReader } from '../protocol/bytes.ts'

export interface ListedCommand {
  id: string
  state: 'running' | 'ended'
}

const MOST = 4_096

/** The commands that sbxd knows, as in WELCOME and COMMAND_LIST. */
export function readCommandList(reader: ByteReader): ListedCommand[] {
  const count = reader.u32()
  if (count > MOST) throw new SandboxError('protocol', 'sbxd lists more commands than it may have')
  const commands: ListedCommand[] = []
  for (let i = 0; i < count; i += 1) {
    const id = reader.bytes(16).toString('hex')
    const state = reader.u8() === 0 ? 'running' : 'ended'
    reader.bytes(24)
    reader.bytes(reader.u16())
    commands.push({ id, state })
  }
  return commands
}
