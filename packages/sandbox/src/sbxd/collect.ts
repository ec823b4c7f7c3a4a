import { randomBytes } from 'node:crypto'

import { SandboxError } from '../errors.ts'
import type { CommandExit, CommandId, CommandStream, OutputPolicy, RunRequest, Sandbox } from '../sandbox.ts'

/**
 * Result of a command, with its output as UTF-8 text. With `cut` only both ends of each stream are
 * present.
 */
interface Collected extends CommandExit, Record<CommandStream, string> {}

interface CollectRequest extends Omit<RunRequest, 'id' | 'autoAcknowledge' | 'lend'> {
  /** Default: a new one, since nothing attaches to this command again. */
  id?: CommandId
  /** Cancels the command, which then resolves as usual, with the cause `cancel`. */
  signal?: AbortSignal
}

/** Half of the maximum that sbxd stores of a stream. */
const KEPT_BYTES = 128 * 1024
/** Keeps memory on both sides independent of the output, and lets no command wait for us. */
const BOTH_ENDS: OutputPolicy = { kind: 'cut', head: KEPT_BYTES, tail: KEPT_BYTES }

/** A unique id. */
export function newCommandId(): CommandId {
  return randomBytes(16).toString('hex')
}

/**
 * Runs a command to its end and collects its output: the first and the last 128 KiB of each stream,
 * unless `policy` differs. A command that fails is no error, see its `code`; rejects with a
 * `SandboxError` where it could not be started or the connection was lost before its end.
 */
export async function collect(sandbox: Sandbox, request: CollectRequest): Promise<Collected> {
  const { signal, id = newCommandId(), policy = BOTH_ENDS, ...asked } = request
  if (signal?.aborted) throw new SandboxError('cancelled', 'The command was cancelled before it began.')
  const command = await sandbox.run({ ...asked, id, policy, autoAcknowledge: true })
  // A lost connection rejects in the loop below.
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
