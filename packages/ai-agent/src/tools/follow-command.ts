/** Stays with a command to its end: reads its output over lost streams, and passes a cancel on to it. */
import { SandboxError } from '@sandlot/sandbox/errors'
import type { CommandExit, RunningCommand } from '@sandlot/sandbox/sandbox'
import { isShutdown } from './call-failure.ts'
import type { CommandOutput } from './command-output.ts'
import { orAborted } from './or-aborted.ts'
import type { CallContext } from './tool.ts'

/** From TERM to KILL. Short enough that the end is known before the call's backstop. */
const GRACE_MS = 1000
const MAX_REATTACH = 5
/** Bytes. Well below what the sandbox keeps for us, and few enough messages. */
const ACKNOWLEDGE_EVERY = 128 * 1024

/** How the following of a command ended: with its end, or because it could not be reached any more. */
export interface Followed {
  command: RunningCommand
  end: { exit: CommandExit } | { lost: SandboxError }
}

/** Reads the command's output to its end, over lost streams, and passes a cancel on to it. */
export async function followToEnd(
  first: RunningCommand,
  output: CommandOutput,
  ctx: CallContext,
  letGo: AbortSignal,
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
    for (let lostAt = -1, tries = 0; ;) {
      if (ctx.signal.aborted) cancel()
      try {
        return { command, end: { exit: await readToEnd(command, output, letGo) } }
      } catch (error) {
        if (!(error instanceof SandboxError)) {
          // Most likely the store: without it the call cannot go on, and nobody would read the command's pipe.
          if (!letGo.aborted) await command.cancel(GRACE_MS)
          throw error
        }
        tries = output.position() > lostAt ? 1 : tries + 1
        lostAt = output.position()
        const again = tries > MAX_REATTACH ? undefined : await reattach(command, output, ctx)
        if (again === undefined) return { command, end: { lost: error } }
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
  letGo: AbortSignal,
): Promise<CommandExit> {
  // It rejects together with the output; then the output's error is the one that is handled.
  void Promise.allSettled([command.exit])
  // All but the last byte: what is acknowledged to the end may be forgotten with how it ended, and that is not stored yet.
  let acknowledged = 0
  const acknowledge = (upTo: number): void => {
    if (upTo - acknowledged <= ACKNOWLEDGE_EVERY) return
    acknowledged = upTo - 1
    command.acknowledge({ stdout: acknowledged })
  }
  const chunks = command.output[Symbol.asyncIterator]()
  for (;;) {
    const step = await orAborted(chunks.next(), letGo)
    if (step.done === true) break
    await orAborted(output.add(step.value.offset, step.value.data, acknowledge), letGo)
  }
  await output.stored()
  return await orAborted(command.exit, letGo)
}

/** The stream was lost, not necessarily the sandbox. Undefined when the command is gone with it. */
async function reattach(
  command: RunningCommand,
  output: CommandOutput,
  ctx: CallContext,
): Promise<RunningCommand | undefined> {
  try {
    const sandbox = await ctx.sandbox()
    return sandbox.bootId === command.bootId
      ? await sandbox.attach(command.id, { stdout: output.position() })
      : undefined
  } catch (error) {
    ctx.log.warn({ err: error }, 'a lost sandbox could not be reached again')
    return undefined
  }
}

/** Aborts `letGo` at a shutdown, until the returned function is called: a signal that somebody listens to is never collected. */
export function letGoAtShutdown(signal: AbortSignal, letGo: AbortController): () => void {
  const check = (): void => {
    if (isShutdown(signal)) letGo.abort(signal.reason)
  }
  signal.addEventListener('abort', check)
  check()
  return () => signal.removeEventListener('abort', check)
}
