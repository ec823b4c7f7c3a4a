/**
 * A command of a person, without a model: it runs through the scheduler as the one call of a turn,
 * so that the same rules, limits and log lines hold as for the agent's commands. Nothing of it is
 * stored.
 */
import { randomBytes } from 'node:crypto'
import { SandboxError, type SandboxErrorCode } from '@sandlot/sandbox/errors'
import type { CommandExit, RunRequest, RunningCommand, Sandbox } from '@sandlot/sandbox/sandbox'
import {
  END_OF_STDIN,
  EXEC_STREAM,
  type ExecEnd,
  type ExecNotice,
  execRequest,
} from '@sandlot/shared/workspace/exec'
import { type ErrorCode, messageOf } from '@sandlot/shared/base/errors'
import { sandlotEventOf } from '@sandlot/shared/chat/events'
import { newId } from '@sandlot/shared/base/ids'
import type { Mode } from '@sandlot/shared/chat/mode'
import type { NewAudit } from '@sandlot/shared/admin/audit'
import type { FailureReason } from '@sandlot/shared/chat/reasons'
import type { Rule, RuleReason } from '@sandlot/shared/chat/rules'
import { z } from 'zod'
import { judge } from '../approval/engine.ts'
import { callRequest } from '../approval/request.ts'
import type { RuleRegistry } from '../approval/rule-registry.ts'
import { shellEnvironment } from '../approval/shell/shell-parts.ts'
import type { BatchContext } from '../calls/batch.ts'
import type { createScheduler } from '../calls/scheduler.ts'
import { callsBefore } from '../history/read-log.ts'
import type { Log } from '../log.ts'
import { REASON_OF_EXIT } from '../tools/sandbox-reasons.ts'
import { ToolError, abortReason } from '../tools/tool-error.ts'
import { acquireSandbox } from '../tools/sandbox-command/sandboxed-tool-executor.ts'
import { type CallContext, type Tool, type ToolOutcome, type ToolUpdate, defineTool } from '../tools/tool.ts'
import { workspacePath } from '../tools/workspace-path.ts'

/** The most commands of one person at once. */
const MOST_EXECS = 16
const NAME = 'exec'
/** The agent's tool whose rules hold. */
const SHELL_TOOL = 'run_shell_command'
/** From TERM to KILL. */
const GRACE_MS = 1_000
/** Bytes on their way to the service above which the command waits. */
const MOST_WAITING_BYTES = 1024 * 1024
const NORMAL = 1000

/** The part of a WebSocket that a command needs. */
interface ExecSocket {
  readonly bufferedAmount: number
  send(data: Uint8Array | string, sent?: () => void): void
  close(code: number, reason: string): void
  on(event: 'message', heard: (data: Buffer, isBinary: boolean) => void): unknown
  once(event: 'close', heard: () => void): unknown
}

interface ExecParts {
  runCalls: ReturnType<typeof createScheduler>['run']
  sandbox: (userId: string, signal: AbortSignal) => Promise<Sandbox>
  rules: RuleRegistry
  /** See `ExternalAccess`. */
  externalAccess: (sessionId: string, userId: string, rules: readonly Rule[]) => string | undefined
  /** Aborts when the agent goes. */
  leaving: AbortSignal
  /** Writes a line of the audit log; must not throw. */
  audit: (line: NewAudit) => void
  log: Log
  /** Epoch milliseconds. */
  now: () => number
}

const input = execRequest.omit({ timeoutMs: true, stdin: true, mode: true }).extend({ timeout_ms: z.int() })
type Input = z.infer<typeof input>

interface ExecCommand extends Omit<Input, 'timeout_ms'> {
  userId: string
  timeoutMs: number
  mode: Mode
  /** One output for stdout and stderr. */
  merge: boolean
}

export class Execs {
  readonly #parts: ExecParts
  readonly #running = new Map<string, number>()

  constructor(parts: ExecParts) {
    this.#parts = parts
  }

  /** Runs it over `socket`, whose end cancels it. Never rejects. */
  async run(
    socket: ExecSocket,
    command: ExecCommand,
    actor: Pick<NewAudit, 'who' | 'from'> = { who: { id: command.userId, name: command.userId } },
  ): Promise<void> {
    const { userId } = command
    const running = this.#running.get(userId) ?? 0
    const io = new ExecStreams(socket)
    if (running >= MOST_EXECS)
      return io.refuse(
        'rate_limited',
        `${MOST_EXECS} of your commands run already, which is the most there can be. Wait for one to end.`,
      )
    this.#running.set(userId, running + 1)
    try {
      await this.#run(io, command, actor)
    } catch (error) {
      const { leaving, log } = this.#parts
      if (!leaving.aborted) log.warn({ userId, error: messageOf(error) }, 'a command of a person failed')
      io.refuse('agent_unavailable', 'The agent went away while the command ran. It was ended.')
    } finally {
      const left = (this.#running.get(userId) ?? 1) - 1
      if (left > 0) this.#running.set(userId, left)
      else this.#running.delete(userId)
    }
  }

  async #run(io: ExecStreams, command: ExecCommand, actor: Pick<NewAudit, 'who' | 'from'>): Promise<void> {
    const { runCalls, audit, log } = this.#parts
    const { userId, mode, merge, timeoutMs, ...args } = command
    const callId = newId('c')
    const tool = execTool(io, merge)
    const call = { id: callId, name: NAME, args: { ...args, timeout_ms: timeoutMs } }
    log.info({ userId, callId, tool: NAME }, 'a person runs a command')
    audit({ ...actor, what: 'exec_started', whom: { id: callId }, after: { mode } })
    const running = runCalls([call], this.#context(tool, io, { userId, mode, callId }))
    let asked: readonly RuleReason[] | undefined
    for (;;) {
      const step = await running.next()
      if (step.done === true) {
        const [outcome] = step.value
        if (outcome !== undefined) {
          const { status } = outcome
          const reason = outcome.status === 'failed' ? outcome.reason : undefined
          audit({ ...actor, what: 'exec_ended', whom: { id: callId }, after: { status, reason } })
          report(io, outcome, callId, asked)
        }
        return
      }
      const happened = sandlotEventOf(step.value)
      if (happened?.type === 'approval_asked') asked = happened.why ?? []
    }
  }

  #context(
    tool: Tool,
    io: ExecStreams,
    { userId, mode, callId }: { userId: string; mode: Mode; callId: string },
  ): BatchContext {
    const { sandbox, rules, externalAccess, leaving, now, log } = this.#parts
    return {
      ids: { sessionId: NAME, userId, promptId: callId, turn: 1 },
      secret: () => Promise.resolve(undefined),
      tools: { getTool: () => tool, listTools: () => [tool] },
      signal: AbortSignal.any([io.left, leaving]),
      cancelSignal: () => io.left,
      sandbox: (signal) => sandbox(userId, signal),
      approvals: {
        // There is no one to ask: the answer to the request says what would have been asked.
        of: () => ({ state: 'none', answer: async () => ({ allowed: false, by: 'unattended' }) }),
        judge: async (judged, by) => {
          const held = await rules.of(userId, { sessionId: NAME, promptId: callId })
          const external = { externalAccess: externalAccess(NAME, userId, held), lost: by?.lost }
          return { ...judge(callRequest(judged, by?.paths), held, mode, external), options: [] }
        },
      },
      before: callsBefore([]),
      outputs: { append: async () => undefined, read: async () => new Uint8Array() },
      events: () => [],
      now,
      log,
    }
  }
}

// ── The call
// ────────────────────────────────────────────────────────────────────────────────────────────

function execTool(io: ExecStreams, merge: boolean): Tool {
  return defineTool({
    name: NAME,
    description: 'Runs a command of a person.',
    kind: 'execute',
    input,
    readOnly: false,
    runs: { as: { id: SHELL_TOOL }, repeatable: true },
    requests: ({ command, cwd = '.' }) => [{ kind: 'shell', command, cwd }],
    title: () => 'Run a command',
    execute: (args, ctx) => runCommand(args, { ctx, io, merge }),
  })
}

async function* runCommand(
  { command, cwd = '.', env }: Input,
  { ctx, io, merge }: { ctx: CallContext; io: ExecStreams; merge: boolean },
): AsyncGenerator<ToolUpdate, ToolOutcome> {
  const place = workspacePath(cwd) || '.'
  const sandbox = yield* acquireSandbox(ctx)
  yield { type: 'started', attempt: { n: 1, boot: sandbox.bootId } }
  ctx.signal.throwIfAborted()
  const running = await started(sandbox, {
    id: randomBytes(16).toString('hex'),
    command,
    cwd: place,
    env: { ...(ctx.judged?.unasked === true && shellEnvironment(command)), ...env },
    merge,
    stdin: true,
    autoAcknowledge: true,
    timeoutMs: ctx.deadline && Math.max(1, Math.ceil(ctx.deadline.remainingMs())),
  })
  return outcomeOf(await followed(running, ctx.signal, io), ctx.signal)
}

/** Throws `ToolError` where what was asked for is why it cannot start. */
async function started(sandbox: Sandbox, request: RunRequest): Promise<RunningCommand> {
  try {
    return await sandbox.run(request)
  } catch (error) {
    if (!(error instanceof SandboxError) || !ASKED_FOR.has(error.code)) throw error
    throw new ToolError('invalid_arguments', `${error.message}.`, { cause: error })
  }
}

const ASKED_FOR: ReadonlySet<SandboxErrorCode> = new Set([
  'not_found',
  'not_regular',
  'permission',
  'start_failed',
  'too_large',
])

/** Its output goes out and stdin comes in until it has ended, with everything that it started. */
async function followed(running: RunningCommand, signal: AbortSignal, io: ExecStreams): Promise<CommandExit> {
  const cancel = (): void => void Promise.allSettled([running.cancel(GRACE_MS)])
  signal.addEventListener('abort', cancel, { once: true })
  try {
    if (signal.aborted) cancel()
    io.start(running)
    for await (const { stream, data } of running.output) await io.output(stream, data)
    return await running.exit
  } finally {
    signal.removeEventListener('abort', cancel)
  }
}

function outcomeOf(exit: CommandExit, signal: AbortSignal): ToolOutcome {
  // The sandbox keeps the time too: whichever is first.
  const reason = exit.cause === 'cancel' ? abortReason(signal) : REASON_OF_EXIT[exit.cause]
  const shared = {
    data: { exit },
    outputInfo: { bytes: exit.bytes.stdout + exit.bytes.stderr, lines: 0, truncated: false, url: '' },
    ...(exit.code === undefined ? {} : { exit: { code: exit.code } }),
  }
  return reason === undefined
    ? { status: 'completed', forModel: '', ...shared }
    : { status: 'failed', reason, forModel: ENDED[reason] ?? 'The command was ended.', ...shared }
}

const ENDED: Partial<Record<FailureReason, string>> = {
  timeout: 'The command did not end in its time and was ended.',
  cancelled: 'The command was cancelled.',
  out_of_memory: 'The command was killed because the sandbox ran out of memory.',
  disk_quota: 'The command was ended because the disk space of the sandbox is used up.',
}

// ── What its caller learns
// ────────────────────────────────────────────────────────────────────────────────────────────

const ended = z.object({
  exit: z.custom<CommandExit>((value) => typeof value === 'object' && value !== null),
})

const CODE_OF: Partial<Record<FailureReason, ErrorCode>> = {
  invalid_arguments: 'bad_request',
  path_outside: 'bad_request',
  denied: 'forbidden',
  rate_limited: 'rate_limited',
  disk_quota: 'too_large',
  tool_error: 'internal',
}

/** `asked`: why rules or mode ask about it. */
function report(
  io: ExecStreams,
  outcome: ToolOutcome,
  callId: string,
  asked: readonly RuleReason[] | undefined,
): void {
  const reason = outcome.status === 'failed' ? outcome.reason : undefined
  if (asked !== undefined) return io.refuse('approval_needed', approvalText(asked))
  if (!io.started) {
    const code = (reason && CODE_OF[reason]) ?? 'not_ready'
    return io.refuse(code, reason === 'denied' ? deniedText(outcome.data) : outcome.forModel)
  }
  const { exit } = ended.safeParse(outcome.data).data ?? {}
  io.end({
    callId,
    name: NAME,
    status: outcome.status,
    reason,
    text: reason === undefined ? '' : outcome.forModel,
    exitCode: exit?.code ?? null,
    signal: exit?.signal ?? null,
    bytes: exit?.bytes ?? io.sent,
    durationMs: exit?.durationMs ?? outcome.timing?.runMs ?? 0,
    userMs: exit?.userMs ?? 0,
    systemMs: exit?.systemMs ?? 0,
    maxRssKb: exit?.maxRssKb ?? 0,
  })
}

function approvalText(why: readonly RuleReason[]): string {
  const reasons = reasonsIn(why)
  const about = reasons === '' ? '' : `: ${reasons}`
  return `The agent would ask before it runs this in this mode, and there is no one to ask${about}. Nothing was run. A higher “mode” may allow it, unless a rule of yours asks.`
}

function deniedText(data: unknown): string {
  const why = z.object({ why: z.array(z.custom<RuleReason>()) }).safeParse(data).data?.why ?? []
  return `This command is not allowed here, so it was not run: ${reasonsIn(why)}.`
}

function reasonsIn(why: readonly RuleReason[]): string {
  return why.map(({ part, because }) => `${part} ${because}`).join('; ')
}

/** The socket of one command. */
class ExecStreams {
  /** Output so far. */
  readonly sent = { stdout: 0, stderr: 0 }
  readonly #socket: ExecSocket
  readonly #left = new AbortController()
  /** Stdin that came before the command ran. */
  #early: (Buffer | undefined)[] = []
  #command: RunningCommand | undefined
  #taken = 0
  #drained: (() => void) | undefined

  constructor(socket: ExecSocket) {
    this.#socket = socket
    socket.on('message', (data, isBinary) => this.#heard(isBinary ? data : undefined, data))
    socket.once('close', () => {
      this.#left.abort()
      this.#drained?.()
    })
  }

  get started(): boolean {
    return this.#command !== undefined
  }

  /** Aborts when the client has gone. */
  get left(): AbortSignal {
    return this.#left.signal
  }

  start(command: RunningCommand): void {
    this.#command = command
    this.#say({ type: 'started' })
    for (const piece of this.#early) this.#write(command, piece)
    this.#early = []
  }

  /** Resolves when more may come. */
  async output(stream: keyof typeof EXEC_STREAM, data: Uint8Array): Promise<void> {
    this.sent[stream] += data.length
    if (this.#left.signal.aborted) return
    const message = Buffer.allocUnsafe(data.length + 1)
    message[0] = EXEC_STREAM[stream]
    message.set(data, 1)
    this.#socket.send(message, () => {
      if (this.#socket.bufferedAmount < MOST_WAITING_BYTES) this.#drained?.()
    })
    if (this.#socket.bufferedAmount < MOST_WAITING_BYTES) return
    await new Promise<void>((resolve) => {
      this.#drained = resolve
    })
    this.#drained = undefined
  }

  refuse(code: ErrorCode, message: string): void {
    this.#say({ type: 'refused', code, message })
    this.#socket.close(NORMAL, 'refused')
  }

  end(end: ExecEnd): void {
    this.#say({ type: 'ended', end })
    this.#socket.close(NORMAL, 'ended')
  }

  #say(notice: ExecNotice): void {
    if (!this.#left.signal.aborted) this.#socket.send(JSON.stringify(notice))
  }

  #heard(piece: Buffer | undefined, text: Buffer): void {
    if (piece === undefined && text.toString('utf8') !== END_OF_STDIN) return
    if (this.#command === undefined) this.#early.push(piece)
    else this.#write(this.#command, piece)
  }

  /** Undefined: the end. */
  #write(command: RunningCommand, piece: Buffer | undefined): void {
    // It rejects when the command has ended: what it did not read is lost as in a pipe.
    if (piece === undefined) return void Promise.allSettled([command.closeStdin()])
    command.writeStdin(piece).then(
      () => {
        this.#taken += piece.length
        this.#say({ type: 'taken', bytes: this.#taken })
      },
      () => undefined,
    )
  }
}
