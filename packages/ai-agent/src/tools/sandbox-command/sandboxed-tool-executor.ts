/**
 * Runs a command in the user's sandbox, at most once per attempt whatever crashes: the attempt is
 * in the log before the command is sent, a lost stream is taken up again, and a restart adopts what
 * runs or says that it does not know.
 */
import { inSandbox } from '../../approval/files.ts'
import { orTimeout } from '@sandlot/shared/async/or-timeout'
import type { ExitInfo } from '@sandlot/shared/chat/call'
import type { FailureReason } from '@sandlot/shared/chat/reasons'
import type { RefusedHost } from '@sandlot/sandbox/sandbox'
import { SandboxError, type SandboxErrorCode } from '@sandlot/sandbox/errors'
import type { CommandExit, RunningCommand, Sandbox } from '@sandlot/sandbox/sandbox'
import { NotRunError, ToolError, abortReason } from '../tool-error.ts'
import { commandId } from './command-id.ts'
import { type CommandOutput, createCommandOutput, type FinishedOutput } from '../output/command-output.ts'
import { type Followed, followToEnd, detachAtShutdown, whileLeased } from './follow-command.ts'
import { createLiveOutput } from '../output/live-output.ts'
import { REASON_OF_EXIT, REASON_OF_SANDBOX_ERROR, memoryNote, stoppedWords } from '../sandbox-reasons.ts'
import type { CallContext, ToolUpdate } from '../tool.ts'

interface SandboxCommand {
  /** Shell text, or an argument vector. */
  command: string | readonly string[]
  /**
   * Relative to the workspace. Default: the workspace, or where the shell of the session stopped.
   */
  cwd?: string
  /**
   * Continues in the state of this chat session's last such command: its directory and exported
   * variables, as long as the sandbox is not stopped. Of several at once the last one to end wins.
   */
  inSession?: boolean
  /** For this command only. */
  env?: Readonly<Record<string, string>>
  /** It changes nothing: one whose end is not known can be made again. */
  readOnly?: true
  /** See `truncateToolOutput`. */
  headShare?: number
}

/** The end of a command, and the parts of its output for the model and the screen. */
export type CommandResult = FinishedOutput & {
  usage?: CommandUsage
  /** Hosts that it requested and that were refused. */
  refusedHosts?: readonly RefusedHost[]
  /** Deviations of its session from the expected state, one plain sentence each. */
  notes?: readonly string[]
} & (
    | { status: 'completed'; exit: ExitInfo }
    | { status: 'failed'; reason: FailureReason; message: string; exit?: ExitInfo }
  )

/** Measured inside the sandbox. */
interface CommandUsage {
  durationMs: number
  userMs: number
  systemMs: number
  maxRssKb: number
}

const SLOW_SANDBOX_MS = 300
/**
 * A file of the whole output: from the offset at which the model’s text is cut, as far as the
 * sandbox can tell.
 */
const SPOOL = { afterBytes: 128 * 1024, maxBytes: 16 * 1024 * 1024 }
/** The stream went, or another controller has taken it over for a moment. */
const LOST: ReadonlySet<SandboxErrorCode> = new Set(['sandbox_lost', 'fenced'])

/** Runs the commands of one call. */
export class SandboxedToolExecutor {
  readonly #ctx: CallContext

  constructor(ctx: CallContext) {
    this.#ctx = ctx
  }

  /**
   * Yields `started` before the command is sent, then live output; returns how it ended, with
   * partial output when it was cut short. Throws `ToolError` or `SandboxError` when it never ran,
   * and the signal's reason at a shutdown.
   */
  async *run(request: SandboxCommand): AsyncGenerator<ToolUpdate, CommandResult> {
    const detach = new AbortController()
    const stay = detachAtShutdown(this.#ctx.signal, detach)
    try {
      return yield* runUntil(detach.signal, request, this.#ctx)
    } finally {
      stay()
      detach.abort()
    }
  }
}

async function* runUntil(
  detach: AbortSignal,
  request: SandboxCommand,
  ctx: CallContext,
): AsyncGenerator<ToolUpdate, CommandResult> {
  // A command of an earlier process may run on while its sandbox is unreachable.
  const sandbox = yield* acquireSandbox(
    ctx,
    ctx.previous === undefined ? undefined : () => whileLeased(async (found) => found, ctx, { detach }),
  )
  const live = createLiveOutput()
  const output = createCommandOutput(ctx, live)
  const attempt = ctx.previous ?? { n: 1, boot: sandbox.bootId }
  const id = commandId({ ...ctx.ids, attempt: attempt.n })

  if (ctx.previous === undefined) yield { type: 'started', attempt }
  const following = begin({ request, sandbox, id, output, detach }, ctx).then((command) =>
    followToEnd(command, output, ctx, detach),
  )
  // Its failure is thrown where it is awaited below; live pieces end with it either way.
  void Promise.allSettled([following]).then(() => live.end())
  for await (const piece of live.pieces()) yield { type: 'output', piece }
  return await finishedResult(await following, output, sandbox, id, request, ctx)
}

/** The user's sandbox; says so when it takes a while. */
export async function* acquireSandbox(
  ctx: CallContext,
  acquire: () => Promise<Sandbox> = () => ctx.sandbox(),
): AsyncGenerator<ToolUpdate, Sandbox> {
  const acquiring = acquire()
  const first = await orTimeout(acquiring, SLOW_SANDBOX_MS, 'slow')
  if (first !== 'slow') return first
  void Promise.allSettled([acquiring])
  yield { type: 'progress', message: 'Starting the sandbox' }
  return await acquiring
}

// ── Beginning
// ───────────────────────────────────────────────────────────────────────────────────────────

interface Beginning {
  request: SandboxCommand
  sandbox: Sandbox
  id: string
  output: CommandOutput
  detach: AbortSignal
}

/** Start the command, or adopt what an earlier process started. */
async function begin(
  { request, sandbox, id, output, detach }: Beginning,
  ctx: CallContext,
): Promise<RunningCommand> {
  if (ctx.previous !== undefined) {
    // Another boot has forgotten the command: whether it ran is unknown, so it never runs
    // again.
    if (sandbox.bootId !== ctx.previous.boot) throw unknownEnd(request)
    await output.replay()
    const adopted = await sandbox.attach(id, { stdout: output.position() }, { acknowledged: true })
    if (adopted !== undefined) return adopted
    // This boot does not know it: it never arrived, unless it has printed something already.
    if (output.position() > 0) throw unknownEnd(request)
  }
  if (ctx.signal.aborted) throw new NotRunError()
  const start = (on: Sandbox): Promise<RunningCommand> =>
    on.run({
      id,
      bootId: sandbox.bootId,
      command: request.command,
      cwd: request.cwd,
      env: request.env,
      ...(request.inSession === true
        ? { session: ctx.ids.sessionId, home: ctx.ids.folder && inSandbox(ctx.ids.folder, on) }
        : {}),
      merge: true,
      timeoutMs: ctx.deadline && Math.max(1, Math.ceil(ctx.deadline.remainingMs())),
      spool: { ...SPOOL, afterBytes: Math.min(ctx.output.limits.chars, SPOOL.afterBytes) },
    })
  try {
    return await start(sandbox)
  } catch (error) {
    // The stream went before the answer came. Whether the command arrived is asked, not guessed.
    if (!(error instanceof SandboxError) || !LOST.has(error.code)) throw error
    const begun = await whileLeased(
      async (again) => {
        if (again.bootId !== sandbox.bootId) return undefined
        const arrived = await again.attach(id)
        if (arrived !== undefined) return arrived
        if (ctx.signal.aborted) throw new NotRunError()
        return await start(again)
      },
      ctx,
      { detach },
    )
    if (begun === undefined) throw error
    return begun
  }
}

function unknownEnd({ readOnly }: SandboxCommand): ToolError {
  return readOnly === true
    ? new ToolError(
        'interrupted',
        'The call was interrupted by a restart and did not finish. It changed nothing; it can be made again.',
      )
    : new ToolError(
        'unknown_effect',
        'The call was interrupted by a restart of the sandbox. Whether it had its effect is not known: look before you run it again.',
      )
}

// ── Ending
// ──────────────────────────────────────────────────────────────────────────────────────────────

async function finishedResult(
  followed: Followed,
  output: CommandOutput,
  sandbox: Sandbox,
  id: string,
  request: SandboxCommand,
  ctx: CallContext,
): Promise<CommandResult> {
  const { command, end } = followed
  const keep = request.headShare === undefined ? {} : { headShare: request.headShare }
  if ('lost' in end) {
    await output.stored()
    const reason = ctx.signal.aborted ? abortReason(ctx.signal) : REASON_OF_SANDBOX_ERROR[end.lost.code]
    const message = ctx.signal.aborted ? STOPPED_AND_LOST : (end.message ?? endText(reason, ctx))
    return { ...output.finish(keep), status: 'failed', reason, message }
  }
  const { exit } = end
  const isWhole = output.position() === exit.bytes.stdout
  // Without its output it says nothing, and a later call can make it.
  if (!isWhole && request.readOnly === true) throw unknownEnd(request)
  // Only when the outcome is in the log may the sandbox forget how the command ended.
  void ctx.output.stored.then(() => command.acknowledge({ stdout: exit.bytes.stdout }))
  const file = exit.spoolFile === undefined ? {} : { file: `${sandbox.workspace}/.tool-outputs/${id}.txt` }
  const { durationMs, userMs, systemMs, maxRssKb } = exit
  const notes = notesOf(command, exit, ctx.ids.folder)
  const result = {
    ...(notes.length === 0 ? {} : { notes }),
    ...output.finish({ ...keep, ...file, bytes: exit.bytes.stdout }),
    usage: { durationMs, userMs, systemMs, maxRssKb },
    refusedHosts: exit.refusedHosts,
  }

  const how =
    exit.signal === undefined
      ? exit.code === undefined
        ? undefined
        : { code: exit.code }
      : { signal: exit.signal }
  const reason = REASON_OF_EXIT[exit.cause]
  if (reason === undefined) return { ...result, status: 'completed', exit: how ?? { code: 0 } }
  // We cancel for several reasons; the sandbox only sees a cancel.
  const why = reason === 'cancelled' && ctx.signal.aborted ? abortReason(ctx.signal) : reason
  return {
    ...result,
    status: 'failed',
    reason: why,
    message: endText(why, ctx, exit),
    exit: how,
  }
}

/** Parts of the session's state that were lost, before this command or after it. */
function notesOf(command: RunningCommand, exit: CommandExit, folder: string | undefined): string[] {
  return [
    ...(command.moved
      ? [
          folder === undefined
            ? 'The directory where the last command stopped is gone; this one began in the workspace.'
            : `The directory where this command should have begun, ${folder} or where the last one stopped, is not there; it began in the workspace.`,
        ]
      : []),
    ...[memoryNote(exit)].filter((note) => note !== undefined),
    ...(exit.session === 'refused'
      ? ['The exported variables are too large to be kept; the next command begins where this one did.']
      : []),
  ]
}

const STOPPED_AND_LOST =
  'The command was stopped, and its sandbox could not be reached any more: whether it has ended, and what it did, is not known.'

function endText(reason: FailureReason, ctx: CallContext, exit: Pick<CommandExit, 'stopped'> = {}): string {
  switch (reason) {
    case 'timeout':
      return `The command did not end within its limit of ${ctx.deadline?.limitMs ?? '?'} ms; it and everything it had started was ended${stoppedWords(exit)}.`
    case 'cancelled':
      return ctx.signal.aborted
        ? `The user cancelled the command; it and everything it had started was ended${stoppedWords(exit)}.`
        : 'The command was ended from outside, because the sandbox was stopped or reset.'
    case 'out_of_memory':
      return 'The sandbox ran out of memory and the command was killed.'
    case 'disk_quota':
      return 'The disk space of the sandbox is used up and the command was ended. Delete what is not needed, then try again.'
    case 'output_limit':
      return 'The command printed more than it may and was ended.'
    case 'sandbox_unavailable':
      return 'The sandbox could not be reached any more; whether the command had its effect is not known.'
    case 'sandbox_lost':
      return 'The sandbox went away while the command ran. Files in the workspace are kept.'
    default:
      return 'The command was interrupted before it ended; whether it had its effect is not known.'
  }
}
