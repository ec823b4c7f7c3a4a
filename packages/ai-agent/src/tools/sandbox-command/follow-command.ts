/**
 * Stays with a command to its end: reads its output over lost streams, and passes a cancel on to
 * it.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { SandboxError, type SandboxErrorCode } from '@sandlot/sandbox/errors'
import { type CommandExit, LEASE_MS, type RunningCommand, type Sandbox } from '@sandlot/sandbox/sandbox'
import { isShutdown } from '../tool-error.ts'
import type { CommandOutput } from '../output/command-output.ts'
import { orAborted } from '@sandlot/shared/async/or-aborted'
import type { CallContext } from '../tool.ts'

/** From TERM to KILL. Short enough that the end is known before the call's backstop. */
const GRACE_MS = 1000
/** Milliseconds before each try to reach a lost sandbox again; the last one repeats. */
const RETRY_AFTER = [0, 100, 500, 1_000, 2_000]
/** Bytes. Well below what the sandbox keeps for us, and few enough messages. */
const ACKNOWLEDGE_EVERY = 128 * 1024

/**
 * `cancelled`: a call that was stopped waits for its sandbox all the same, to end the command.
 * `fenced`: another controller has taken the sandbox over; it was late, or this session leaves.
 */
const PASSING: ReadonlySet<SandboxErrorCode> = new Set([
  'engine_unavailable',
  'sandbox_lost',
  'fenced',
  'timeout',
  'ledger',
  'cancelled',
])

/** The result of following a command: its end, or the loss of its sandbox. */
export interface Followed {
  command: RunningCommand
  end: { exit: CommandExit } | Lost
}

interface Lost {
  lost: SandboxError
  /** Why the sandbox ended, in words, where that is known. */
  message?: string
}

/** Reads the command's output to its end, over lost streams, and passes a cancel on to it. */
export async function followToEnd(
  first: RunningCommand,
  output: CommandOutput,
  ctx: CallContext,
  detach: AbortSignal,
): Promise<Followed> {
  let command = first
  const cancel = (): void => {
    if (isShutdown(ctx.signal)) return
    command
      .cancel(GRACE_MS)
      .catch((error: unknown) => ctx.log.warn({ err: error }, 'a command could not be cancelled'))
  }
  ctx.signal.addEventListener('abort', cancel)
  try {
    for (let lostAt = -1, since = 0, tries = 0; ;) {
      if (ctx.signal.aborted) cancel()
      try {
        return { command, end: { exit: await readToEnd(command, output, detach) } }
      } catch (error) {
        if (!(error instanceof SandboxError)) {
          // Most likely the store: without it the call cannot go on, and nothing would read the
          // command's pipe.
          if (!detach.aborted) await command.cancel(GRACE_MS)
          throw error
        }
        // Retries without any progress end after the time for which a sandbox lives without us.
        tries = output.position() > lostAt ? 0 : tries + 1
        if (tries === 0) since = performance.now()
        lostAt = output.position()
        const again = await reattach(command, output, ctx, { detach, since, tries })
        if (again === undefined) return { command, end: { lost: error } }
        if (!('bootId' in again)) return { command, end: again }
        command = again
      }
    }
  } finally {
    ctx.signal.removeEventListener('abort', cancel)
  }
}

async function readToEnd(
  command: RunningCommand,
  output: CommandOutput,
  detach: AbortSignal,
): Promise<CommandExit> {
  // It rejects together with the output; then the output's error is the one that is handled.
  void Promise.allSettled([command.exit])
  // All but the last byte: what is acknowledged to the end may be forgotten with how it ended, and
  // that is not stored yet.
  let acknowledged = 0
  const acknowledge = (upTo: number): void => {
    if (upTo - acknowledged <= ACKNOWLEDGE_EVERY) return
    acknowledged = upTo - 1
    command.acknowledge({ stdout: acknowledged })
  }
  const chunks = command.output[Symbol.asyncIterator]()
  for (;;) {
    const step = await orAborted(chunks.next(), detach)
    if (step.done === true) break
    await orAborted(output.add(step.value.offset, step.value.data, acknowledge), detach)
  }
  await output.stored()
  return await orAborted(command.exit, detach)
}

interface Losing {
  detach: AbortSignal
  /** When the stream was lost, on the clock of `performance.now()`. */
  since: number
  /** Streams in a row that broke without any output. */
  tries: number
}

/**
 * The stream was lost, not necessarily the sandbox: tries until the command is found, or until it
 * cannot run any more. Undefined when it is gone with its boot, whose end is not known; an error
 * also when it could not be reached for the length of the lease.
 */
async function reattach(
  command: RunningCommand,
  output: CommandOutput,
  ctx: CallContext,
  { detach, since, tries }: Losing,
): Promise<RunningCommand | Lost | undefined> {
  const attach = async (sandbox: Sandbox): Promise<RunningCommand | Lost | undefined> => {
    if (sandbox.bootId === command.bootId)
      return await sandbox.attach(command.id, { stdout: output.position() })
    const lost = sandbox.endedBefore
    return lost && { lost, message: lost.message }
  }
  try {
    return await whileLeased(attach, ctx, { detach, since, tries })
  } catch (error) {
    if (detach.aborted || !(error instanceof SandboxError)) throw error
    ctx.log.warn({ err: error }, 'a lost sandbox could not be reconnected')
    const message = `${error.message} Whether the command had its effect is not known.`
    return { lost: error, message: PASSING.has(error.code) ? undefined : message }
  }
}

/**
 * `work` with the user's sandbox, tried again while the sandbox cannot be reached, as long as what
 * runs in there can still run. Rejects with the last `SandboxError`, or the reason of `detach`.
 */
export async function whileLeased<T>(
  work: (sandbox: Sandbox) => Promise<T>,
  ctx: Pick<CallContext, 'sandbox'>,
  { detach, since = performance.now(), tries = 0 }: Pick<Losing, 'detach'> & Partial<Losing>,
): Promise<T> {
  for (let n = tries; ; n += 1) {
    const pause = RETRY_AFTER[Math.min(n, RETRY_AFTER.length - 1)] ?? 0
    // Without a reference: a process that is done does not wait for a sandbox.
    if (pause > 0) await orAborted(sleep(pause, undefined, { ref: false }), detach)
    try {
      return await orAborted(ctx.sandbox().then(work), detach)
    } catch (error) {
      const again = error instanceof SandboxError && PASSING.has(error.code)
      if (detach.aborted || !again || performance.now() - since > LEASE_MS) throw error
    }
  }
}

/**
 * Aborts `detach` at a shutdown, until the returned function is called: a signal that something
 * listens to is never collected.
 */
export function detachAtShutdown(signal: AbortSignal, detach: AbortController): () => void {
  const check = (): void => {
    if (isShutdown(signal)) detach.abort(signal.reason)
  }
  signal.addEventListener('abort', check)
  check()
  return () => signal.removeEventListener('abort', check)
}
