/**
 * Runs what the rules and the mode allow, refuses what they deny, and asks the user about the rest.
 * The question is in the log before a client shows it and survives a restart; the answer, its time
 * limit and who may give it are the session's business, what the rules say is the engine's. A file
 * is judged by where its path leads, and the tool gets that path.
 */
import { absolutePath } from '../../approval/files.ts'
import { lostToGit } from '../../approval/held-by-git.ts'
import { type ResolvedPath, type ResolvedPaths, callRequest } from '../../approval/request.ts'
import type { Loss } from '../../approval/shell/loss.ts'
import { acquireSandbox } from '../../tools/sandbox-command/sandboxed-tool-executor.ts'
import { ToolError, notStartedText } from '../../tools/tool-error.ts'
import { orAborted } from '@sandlot/shared/async/or-aborted'
import { stringifyExactly } from '@sandlot/shared/base/exact-numbers'
import { quotePath } from '@sandlot/shared/base/quoted-path'
import { saidPath } from '../../tools/quoted-path.ts'
import { checkArguments } from '../../tools/tool-schema.ts'
import type {
  ApprovalAnswer,
  CallApproval,
  CallContext,
  Execute,
  Policy,
  PolicyCall,
  Ruling,
  ToolOutcome,
  ToolUpdate,
} from '../../tools/tool.ts'
import { WORKSPACE, openWorkspace, workspacePath } from '../../tools/workspace-path.ts'

export function approve(ttlMs: number): Policy {
  return (next) =>
    async function* approved(call, ctx) {
      const standing = await standingOf(call, ctx)
      if (standing.state === 'asked') {
        const answer = await answered(call, ctx)
        if (!answer.allowed) return deniedOutcome(answer)
        if (answer.input !== undefined) return yield* runEdited(next, call, ctx, answer.input)
      }
      if (standing.state !== 'judged') {
        const { paths, refusal } = yield* pathsAfterRestart(call, ctx, standing.state === 'begun')
        const unasked = standing.state === 'begun'
        return refusal ?? (yield* next(call, { ...ctx, judged: { paths, unasked } }))
      }
      const asNamed = standing.ruling
      if (isForbidden(asNamed)) return forbiddenOutcome(asNamed)
      const paths = yield* resolvePaths(call, ctx)
      const elsewhere = [...(paths ?? [])].some(
        ([named, { path }]) => absolutePath(named) !== absolutePath(path),
      )
      const named = elsewhere ? await orAborted(call.judge(call.args, { paths }), ctx.signal) : asNamed
      const ruling = named.atRisk.length === 0 ? named : yield* lookAtGit(named.atRisk, call, ctx, paths)
      if (ruling.verdict === 'allow') return yield* next(call, { ...ctx, judged: { paths, unasked: true } })
      if (isForbidden(ruling)) return forbiddenOutcome(ruling)
      const { options, why } = ruling
      const links = [...(paths ?? [])].flatMap(([path, { path: leadsTo, linked }]) =>
        linked ? [{ path, leadsTo }] : [],
      )
      yield {
        type: 'approval_asked',
        options,
        why,
        expiresAt: ctx.now() + ttlMs,
        ...(links.length === 0 ? {} : { links }),
      }
      const answer = await answered(call, ctx)
      if (!answer.allowed) return deniedOutcome(answer)
      return answer.input === undefined
        ? yield* next(call, { ...ctx, judged: { paths } })
        : yield* runEdited(next, call, ctx, answer.input)
    }
}

/** Runs the call as its person changed it, and notes the changes for the model. */
async function* runEdited(
  next: Execute,
  call: PolicyCall,
  ctx: CallContext,
  input: Record<string, unknown>,
): AsyncGenerator<ToolUpdate, ToolOutcome> {
  const checked = await checkArguments(call.tool.input, input, ctx.ids.userId)
  if ('problems' in checked)
    throw new ToolError(
      'invalid_arguments',
      `The call as the user changed it does not fit: ${checked.problems.join('; ')}`,
    )
  const edited = { ...call, args: checked.args }
  const about = call.tool.title(checked.args)
  yield { type: 'title', ...(typeof about === 'string' ? { title: about } : about) }
  const { paths, refusal } = yield* pathsAfterRestart(edited, ctx, false)
  const outcome = refusal ?? (yield* next(edited, { ...ctx, judged: { paths } }))
  return { ...outcome, forModel: `${editedText(call.args, checked.args)}\n${outcome.forModel}` }
}

const MOST_EDITED_CHARS = 2_000

function editedText(before: Record<string, unknown>, after: Record<string, unknown>): string {
  const lines = [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap((name) => {
    const [was, is] = [before[name], after[name]].map((value) => stringifyExactly(value))
    if (was === is) return []
    if (is === undefined) return [`${name} was removed`]
    return [
      is.length > MOST_EDITED_CHARS
        ? `${name} was changed, and is ${is.length} characters now: ${is.slice(0, MOST_EDITED_CHARS)}…`
        : `${name} is now ${is}`,
    ]
  })
  return lines.length === 0
    ? '[The user allowed this call as you wrote it.]'
    : `[The user changed this call before it ran: ${lines.join('; ')}]`
}

function answered(call: PolicyCall, ctx: CallContext): Promise<ApprovalAnswer> {
  return call.clock.wait(orAborted(call.approval.answer(), ctx.signal))
}

function isForbidden({ verdict }: Ruling): boolean {
  return verdict === 'deny' || verdict === 'block'
}

function* linksOf({ links }: CallApproval): Generator<[string, ResolvedPath]> {
  for (const { path, leadsTo } of links ?? []) yield [path, { path: leadsTo, linked: true }]
}

/**
 * Targets of a call that was allowed before a restart: from the log, so that it is the same file. A
 * link that the log does not have is judged now. `begun`: allowed without a question, so that
 * another question refuses nothing. Throws ToolError where a refusal means nothing for effects that
 * the call already had.
 */
async function* pathsAfterRestart(
  call: PolicyCall,
  ctx: CallContext,
  begun: boolean,
): AsyncGenerator<ToolUpdate, { paths: ResolvedPaths; refusal?: ToolOutcome }> {
  const shown = new Map(linksOf(call.approval))
  const paths = (yield* resolvePaths(call, ctx, shown)) ?? new Map()
  const notShown = [...paths].find(([named, { linked }]) => linked && !shown.has(named))
  if (notShown === undefined) return { paths }
  const ruling = await orAborted(call.judge(call.args, { paths }), ctx.signal)
  if (ruling.verdict === 'allow' || (ruling.verdict === 'ask' && begun)) return { paths }
  const refusal = isForbidden(ruling) ? forbiddenOutcome(ruling) : notShownOutcome(notShown)
  if (call.begunBefore) throw new ToolError('denied', refusal.forModel, { unasked: true })
  return { paths, refusal }
}

/**
 * Targets of the files that the call asks for, except those in `known`. Undefined when it asks for
 * none.
 */
async function* resolvePaths(
  call: PolicyCall,
  ctx: CallContext,
  known?: ResolvedPaths,
): AsyncGenerator<ToolUpdate, ResolvedPaths | undefined> {
  const asked = callRequest(call).asks.flatMap((ask) => (ask.kind === 'file' ? [ask.path] : []))
  if (asked.length === 0) return undefined
  const found: [string, ResolvedPath][] = [...(known ?? [])]
  for (const path of asked) {
    if (known?.has(path) === true) continue
    const { sandbox, path: named } = yield* openWorkspace(path, ctx)
    const resolved = await orAborted(sandbox.files.resolve(named), ctx.signal)
    const written = workspacePath(path, [WORKSPACE, sandbox.workspace])
    found.push([path, { path: resolved, linked: resolved !== written }])
  }
  return new Map(found)
}

/**
 * The ruling by what git holds when the call's turn has come: a call before it may change that, and
 * where the shell stands.
 */
async function* lookAtGit(
  losses: readonly Loss[],
  call: PolicyCall,
  ctx: CallContext,
  paths: ResolvedPaths | undefined,
): AsyncGenerator<ToolUpdate, Ruling> {
  await call.clock.wait(orAborted(call.inOrder(), ctx.signal))
  const sandbox = yield* acquireSandbox(ctx)
  const cwd = callRequest(call).asks.find((ask) => ask.kind === 'shell')?.cwd
  const { sessionId, folder: home } = ctx.ids
  const place = { cwd, sessionId, home }
  const lost = await orAborted(lostToGit(sandbox, losses, place), ctx.signal)
  return await orAborted(call.judge(call.args, { paths, lost }), ctx.signal)
}

/** Progress of a call's approval, by the log. */
type Standing =
  /** Not at all: what rules and mode say now of its paths as they are named. */
  | { state: 'judged'; ruling: Ruling }
  /** Asked before a restart: the log counts, even if rules and mode have changed since. */
  | { state: 'asked' }
  /** Allowed in an earlier process, without a question. */
  | { state: 'begun' }

async function standingOf(call: PolicyCall, ctx: CallContext): Promise<Standing> {
  // It has asked something of its own, so it was let run.
  if (call.approval.question === true) return { state: 'begun' }
  if (call.approval.state !== 'none') return { state: 'asked' }
  // It began before a restart, so it was allowed then.
  if (ctx.previous !== undefined || call.begunBefore) return { state: 'begun' }
  return { state: 'judged', ruling: await orAborted(call.judge(call.args), ctx.signal) }
}

function forbiddenOutcome({ verdict, why }: Ruling): ToolOutcome {
  const reasons = why.map(({ part, because }) => `${part} ${because}`).join('; ')
  return {
    status: 'failed',
    reason: 'denied',
    forModel: `This call is not allowed here, so it was not run: ${reasons}. Nobody can allow it in this session; find another way, or tell the user.`,
    data: { by: verdict === 'block' ? 'block' : 'rule', why },
  }
}

function notShownOutcome([named, { path }]: [string, ResolvedPath]): ToolOutcome {
  return {
    status: 'failed',
    reason: 'denied',
    forModel: `${quotePath(named)} leads to ${saidPath(path)}, which the user was not shown when they were asked, so this call was not run; try again.`,
    data: { by: 'link' },
  }
}

function deniedOutcome(answer: ApprovalAnswer): ToolOutcome {
  if (answer.by === 'cancel') {
    return {
      status: 'failed',
      reason: 'cancelled',
      forModel: notStartedText('cancelled'),
    }
  }
  const why =
    answer.by === 'expiry'
      ? 'Nobody answered the request to allow this call in time, so it was not run.'
      : answer.by === 'unattended'
        ? 'This call needs the approval of a person, and nobody can give it here, so it was not run.'
        : 'The user did not allow this call, so it was not run.'
  const said =
    answer.reason === undefined || answer.reason.trim() === '' ? '' : ` Their reason: ${answer.reason.trim()}`
  return { status: 'failed', reason: 'denied', forModel: `${why}${said}`, data: { by: answer.by } }
}
