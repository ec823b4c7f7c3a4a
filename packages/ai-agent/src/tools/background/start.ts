/** Starts a command that goes on after its call, at most once whatever crashes, as every command. */
import { ToolError } from '../tool-error.ts'
import { commandId } from '../sandbox-command/command-id.ts'
import { firstLine } from '../define-tool.ts'
import { acquireSandbox } from '../sandbox-command/sandboxed-tool-executor.ts'
import type { CallContext, ToolOutcome, ToolUpdate } from '../tool.ts'
import { logPath, nextJobId } from './jobs.ts'

/** Bytes of its output that are kept, all in the workspace. */
const LOG_BYTES = 64 * 1024 * 1024

export async function* startInBackground(
  request: { command: string; cwd?: string; env?: Readonly<Record<string, string>> },
  ctx: CallContext,
): AsyncGenerator<ToolUpdate, ToolOutcome> {
  const sandbox = yield* acquireSandbox(ctx)
  const attempt = ctx.previous ?? { n: 1, boot: sandbox.bootId }
  const command = commandId({ ...ctx.ids, attempt: attempt.n })
  if (ctx.previous === undefined) yield { type: 'started', attempt }
  ctx.signal.throwIfAborted()
  if (attempt.boot !== sandbox.bootId) {
    throw new ToolError(
      'unknown_effect',
      'A restart of the sandbox interrupted this call. Whether the command was started is not known; it does not run any more.',
    )
  }
  const running = await sandbox.run({
    id: command,
    bootId: attempt.boot,
    command: request.command,
    cwd: request.cwd,
    env: request.env,
    session: ctx.ids.sessionId,
    merge: true,
    background: true,
    // Nobody takes its output here: all of it is in its log, and it never waits for a reader.
    policy: { kind: 'cut', head: 0, tail: 0 },
    spool: { afterBytes: 0, maxBytes: LOG_BYTES },
  })
  // How it ended is asked for when somebody wants to know.
  void Promise.allSettled([running.exit])

  const id = nextJobId(ctx.events())
  const log = `${sandbox.workspace}/${logPath(command)}`
  return {
    status: 'completed',
    forModel:
      `Started in the background as ${id}. It goes on while you do other things; you are told when it ends. ` +
      `read_output (id ${id}) shows what it prints, stop (id ${id}) ends it with everything it has started. Its output is in ${log}`,
    data: { background: { id, command, boot: attempt.boot, line: firstLine(request.command) } },
  }
}
