import { SandboxError } from '../errors.ts'
import { ByteReader } from './protocol/bytes.ts'

export interface ListedCommand {
  id: string
  state: 'running' | 'ended'
  background: boolean
  terminal: boolean
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
    const more = new ByteReader(reader.bytes(reader.u16()))
    const kind = more.left > 0 ? more.u8() : 0
    commands.push({ id, state, background: (kind & 1) === 1, terminal: (kind & 2) === 2 })
  }
  return commands
}
