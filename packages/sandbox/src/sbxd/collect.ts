import { randomBytes } from 'node:crypto'

import { SandboxError } from '../errors.ts'
import type { CommandExit, CommandId, CommandStream, OutputPolicy, RunRequest, Sandbox } from '../sandbox.ts'

/**
 * How a command ended, and what it printed as UTF-8 text. With `cut` the ends of each stream are
 * there, and what lay between is not.
 */
interface Collected extends CommandExit, Record<CommandStream, string> {}

interface CollectRequest extends Omit<RunRequest, 'id' | 'autoAcknowledge' | 'lend'> {
  /** Default a new one: this command is not attached to again. */
  id?: CommandId
  /** Cancels the command, whose end is then told as ever: cause `cancel`. */
  signal?: AbortSignal
}

/** Half of what sbxd keeps of a stream at the most. */
const KEPT_BYTES = 128 * 1024
/** So that neither side's memory depends on what a command prints, and no command waits for us. */
const BOTH_ENDS: OutputPolicy = { kind: 'cut', head: KEPT_BYTES, tail: KEPT_BYTES }

/** An id that no other command has. */
export function newCommandId(): CommandId {
  return randomBytes(16).toString('hex')
}

/**
 * Run a command to its end and gather what it prints: of each stream, unless `policy` says
 * otherwise, the first and the last 128 KiB. A command that fails is no error, its `code` says so;
 * rejects with a `SandboxError` where it could not be started or the connection was lost before its
 * end.
 */
export async function collect(sandbox: Sandbox, request: CollectRequest): Promise<Collected> {
  const { signal, id = newCommandId(), policy = BOTH_ENDS, ...asked } = request
  if (signal?.aborted) throw new SandboxError('cancelled', 'The command was cancelled before it began.')
  const command = await sandbox.run({ ...asked, id, policy, autoAcknowledge: true })
  // A lost connection rejects below.
  const cancel = (): void => void command.cancel().catch(() => {})
  signal?.addEventListener('abort', cancel)
  if (signal?.aborted) cancel()
  const parts: Record<CommandStream, Uint8Array[]> = { stdout: [], stderr: [] }
  try {
    for await (const { stream, data } of command.output) parts[stream].push(data)
    const exit = await command.exit
    return { ...exit, stdout: text(parts.stdout), stderr: text(parts.stderr) }
  } finally {
    signal?.removeEventListener('abort', cancel)
  }
}

function text(parts: readonly Uint8Array[]): string {
  return Buffer.concat(parts).toString()
}
