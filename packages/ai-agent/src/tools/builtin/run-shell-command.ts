import { z } from 'zod'
import { withAliases } from '../argument-aliases.ts'
import type { RefusedHost } from '@sandlot/sandbox/sandbox'
import { logPath, nextJobId, startedData } from '../background/jobs.ts'
import {
  defineTool,
  firstLine,
  textArg,
  type CallContext,
  type ToolOutcome,
  type ToolUpdate,
} from '../tool.ts'
import { shellEnvironment } from '../../approval/shell/shell-parts.ts'
import {
  SandboxedToolExecutor,
  acquireSandbox,
  type CommandResult,
} from '../sandbox-command/sandboxed-tool-executor.ts'
import { grouped } from '../output/truncate-output.ts'
import { WORKSPACE, workspacePath } from '../workspace-path.ts'
import { inSandbox } from '../../approval/files.ts'
import { ToolError } from '../tool-error.ts'
import { lineEndOf, withLineEnd } from '../line-ends.ts'
import { commandId } from '../sandbox-command/command-id.ts'

const input = z.strictObject({
  command: z
    .string()
    .min(1, 'must not be empty')
    .regex(/^[^\0]*$/, 'must not have a NUL character')
    .describe('The command line for bash. Several lines, pipes and redirections are fine.'),
  description: z
    .string()
    .max(200)
    .optional()
    .describe('What the command does, in a few words, for the user.'),
  cwd: z
    .string()
    .optional()
    .describe(
      `Directory to run it in, relative to the folder of this chat or absolute below ${WORKSPACE}. Default: where the last command stopped, at first the folder of this chat.`,
    ),
  timeout_ms: z
    .int()
    .min(1000)
    .max(300_000)
    .default(120_000)
    .describe('Milliseconds after which the command is ended, 1000–300000.'),
  background: z
    .boolean()
    .default(false)
    .describe(
      'Return at once and let it go on, for servers and long jobs: read_output shows what it prints, stop ends it.',
    ),
})
/** Resource use, as measured in the sandbox; or the command that runs on in the background. */
const output = z
  .union([
    z.strictObject({
      durationMs: z.number(),
      userMs: z.number(),
      systemMs: z.number(),
      maxRssKb: z.number(),
      refusedHosts: z
        .array(z.strictObject({ host: z.string(), port: z.int(), reason: z.string() }))
        .optional(),
    }),
    startedData,
  ])
  .optional()

export const runShellCommand = defineTool({
  name: 'run_shell_command',
  description:
    `Runs a command with bash in the user's sandbox (a Linux container) and returns what it printed (stdout and stderr together, in order) and its exit code. ` +
    `It starts in the folder of this chat, in ${WORKSPACE}, whose files are kept; later calls go on in the directory where the last one stopped, with its exported variables (other variables, functions and options are not kept). There is no terminal and no input: ` +
    'use flags that do not ask (such as -y). Long output is cut in the middle and the notice says where all of it is.',
  kind: 'execute',
  input: withAliases(input, {
    cmd: 'command',
    workdir: 'cwd',
    working_directory: 'cwd',
    dir_path: 'cwd',
    directory: 'cwd',
    run_in_background: 'background',
    is_background: 'background',
  }),
  output,
  readOnly: false,
  runs: {
    repeatable: true,
    hint: 'Prefer the file tools for reading and changing files, and run_shell_command for everything else. What runs on (a server, a watcher) is started with background; what listens on a port there can be opened by the user in their browser, under Workspace → App.',
  },
  pathArgs: { cwd: undefined },
  requests: ({ command, cwd }) => [{ kind: 'shell', command: forBash(command), cwd }],
  title: (args) => textArg(args, 'description') ?? firstLine(textArg(args, 'command') ?? 'Run a command'),
  async *execute(args, ctx) {
    const cwd = args.cwd === undefined ? {} : { cwd: workspacePath(args.cwd) || '.' }
    const command = forBash(args.command)
    const env = { ...NO_EDITOR, ...(ctx.judged?.unasked === true ? shellEnvironment(command) : {}) }
    const request = { command, ...cwd, env }
    if (args.background) return yield* startInBackground(request, ctx)
    const result = yield* new SandboxedToolExecutor(ctx).run({ ...request, inSession: true })
    return shellOutcome(result)
  },
})

const QUOTED = /'[^']*'|"(?:\\.|[^"\\])*"|\\./gs

/**
 * Bash takes a CR at the end of a line for a part of the last word. A text in quotation marks stays
 * as it is, where the lines outside of it do not end so.
 */
function forBash(command: string): string {
  const isWritten = lineEndOf(command) === '\r\n' && command.replaceAll(QUOTED, '').includes('\r\n')
  return isWritten ? withLineEnd(command, '\n') : command
}

const REFUSING_EDITOR = `sh -c 'echo "No editor runs here. Give the text in the command: git commit -m; git rebase, merge and revert with GIT_EDITOR=true keep the prepared one." >&2; exit 1'`
/** Makes programs that would open an editor end at once: there is no terminal. */
const NO_EDITOR = {
  EDITOR: REFUSING_EDITOR,
  VISUAL: REFUSING_EDITOR,
  GIT_EDITOR: REFUSING_EDITOR,
  GIT_SEQUENCE_EDITOR: REFUSING_EDITOR,
}

/**
 * The model reads the output and how the command ended; the screen gets the output with its colours
 * where that differs.
 */
function shellOutcome(result: CommandResult): ToolOutcome {
  const { text, screen, info, usage } = result
  const refused = result.refusedHosts ?? []
  const notes = (result.notes ?? []).map((note) => `[${note}]`)
  const forModel = [text, refusedNotice(refused), endOf(result), ...notes]
    .filter((part) => part !== '')
    .join('\n')
  const shared = {
    forModel,
    ...(usage === undefined
      ? {}
      : { data: { ...usage, ...(refused.length > 0 ? { refusedHosts: refused } : {}) } }),
    ...(screen === forModel || screen === ''
      ? {}
      : { content: [{ type: 'content' as const, content: { type: 'text' as const, text: screen } }] }),
    exit: result.exit,
    outputInfo: info,
  }
  return result.status === 'completed'
    ? { status: 'completed', ...shared }
    : { status: 'failed', reason: result.reason, ...shared }
}

/**
 * Programs report it in words of their own, often without the host: the model needs the host to ask
 * for it.
 */
function refusedNotice(refused: readonly RefusedHost[]): string {
  if (refused.length === 0) return ''
  const hosts = refused.map(({ host, port, reason }) => `${host}:${port} (${WHY_REFUSED[reason] ?? reason})`)
  return `[the network of this sandbox refused ${hosts.join(', ')}. The operator of Sandlot can allow hosts with SANDLOT_EGRESS_ALLOW; tell the user what is needed and why]`
}

const WHY_REFUSED: Partial<Record<RefusedHost['reason'], string>> = {
  not_allowed: 'not on the list of allowed hosts',
  denied: 'a rule denies it: ask the user to revoke that rule under Settings → Rules, if it is needed',
  port: 'not on this port',
  private_address: 'its address is not public',
  not_tls: 'only TLS may be spoken there',
  other_name: 'TLS was begun for another name',
}

function endOf(result: CommandResult): string {
  if (result.status === 'failed') return `[${result.message}]`
  if ('signal' in result.exit) return `[ended by ${result.exit.signal}]`
  if (result.exit.code !== 0) return `[exit code ${result.exit.code}]`
  if (result.text !== '') return ''
  const bytes = result.info?.bytes ?? 0
  return bytes === 0
    ? 'The command succeeded (exit code 0) and printed nothing.'
    : `The command succeeded (exit code 0) and printed ${grouped(bytes)} bytes, none of which can be seen.`
}

/* Starts a command that outlives its call, at most once whatever crashes, as every command. */

/** Bytes of its output that are kept, all in the workspace. */
const LOG_BYTES = 64 * 1024 * 1024

async function* startInBackground(
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
    home: ctx.ids.folder && inSandbox(ctx.ids.folder, sandbox),
    merge: true,
    background: true,
    // Its output is not read here: all of it is in its log, and it never waits for a reader.
    policy: { kind: 'cut', head: 0, tail: 0 },
    spool: { afterBytes: 0, maxBytes: LOG_BYTES },
  })
  // Its end is read on request.
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
