/**
 * Runs the calls of one turn. Announces all of them, has all questions asked at once, then runs
 * reads together and a call that changes things alone, waits for every one, and returns the
 * outcomes in call order: that return is "all tool calls complete".
 */
import type { SessionEvent } from '@sandlot/shared/chat/events'
import { mergeGenerators } from '@sandlot/shared/async/streams'
import { orAborted } from '@sandlot/shared/async/or-aborted'
import { z } from 'zod'
import type { WrittenNames } from '../tools/argument-aliases.ts'
import { applyPolicies } from './policies/index.ts'
import { createCallSecrets, type CallSecrets } from '../people/call-secrets.ts'
import { SHUTDOWN, ToolError } from '../tools/tool-error.ts'
import type {
  CallClock,
  CallContext,
  Execute,
  Policy,
  PolicyCall,
  Tool,
  ToolCall,
  ToolOutcome,
  ToolUpdate,
} from '../tools/tool.ts'
import { DEFAULT_RESULT_LIMITS, type ResultLimits } from '../tools/output/truncate-output.ts'
import { guaranteedShare, lengthLimit, type BatchContext } from './batch.ts'
import { announcedEvent, outcomeEvent, type CallStamp, updateEvent } from './events.ts'
import { CallOrder } from './order.ts'
import { cleanOutcome, validateOutcome, shortenOutcome, sanitizeUpdate } from './tool-answers.ts'
import {
  ToolRequestAdapter,
  isRefused,
  type AdaptedToolRequest,
  type RawToolCall,
} from './tool-request-adapter.ts'

export interface ToolScheduler {
  /**
   * Yields every event of the batch, in an order in which they may be stored: the consumer stores a
   * settled event before it asks for the next. Every call gets exactly one outcome, also when
   * `ctx.signal` aborts. Throws only for a shutdown, or when the consumer's own functions fail.
   */
  run(calls: readonly RawToolCall[], ctx: BatchContext): AsyncGenerator<SessionEvent, ToolOutcome[]>
}

interface SchedulerParts {
  policies: readonly Policy[]
  /** 1–10 reads at a time. */
  maxConcurrent: number
  /** Absent: the default. */
  results?: ResultLimits
}

/** One call of the batch, from its announcement to its outcome. */
interface ScheduledCall {
  call: ToolCall
  stamp: CallStamp
  rawInput: unknown
  written: WrittenNames | undefined
  announcedAt: number
  settled: PromiseWithResolvers<void>
  secrets: CallSecrets
  /** It has said that it runs. */
  begun?: boolean
  outcome?: ToolOutcome
  /** Its text is longer than its guaranteed share, so it is settled when all lengths are known. */
  held?: boolean
}

export function createScheduler(parts: SchedulerParts): ToolScheduler {
  const execute = applyPolicies(parts.policies, runTool)
  const results = parts.results ?? DEFAULT_RESULT_LIMITS
  return {
    async *run(calls, ctx) {
      const batch = scheduleAll(calls, ctx)
      for (const scheduled of batch) {
        if (!ctx.before.announced(scheduled.stamp.callId)) yield announcedEvent(scheduled, ctx.log, ctx.now())
      }
      // A consumer that stops reading ends no command: the calls detach from what they run, as at a
      // shutdown.
      const left = new AbortController()
      const share = guaranteedShare(batch.length)
      const order = new CallOrder(
        batch.map(({ call }) => call.tool),
        parts.maxConcurrent,
      )
      const running = batch.map(
        (scheduled, at) => () =>
          runCall(
            scheduled,
            execute(policyCall(scheduled, ctx, order, at), callContext(scheduled, left.signal, ctx, results)),
            { share, limits: results, now: ctx.now },
          ),
      )
      yield* abandonable(runInOrder(running, order), left)
      yield* settleTruncated(batch, ctx.now)
      return batch.flatMap(({ outcome }) => outcome ?? [])
    },
  }
}

function scheduleAll(calls: readonly RawToolCall[], ctx: BatchContext): ScheduledCall[] {
  const announcedAt = performance.now()
  return new ToolRequestAdapter(ctx.tools).normalizeBatch(calls).map(({ written, ...request }) => {
    const tool = ctx.tools.getTool(request.name)
    const call = isRefused(request) || tool === undefined ? refusedCall(request, tool) : { ...request, tool }
    return {
      // Its arguments are the tool's own: what it changes in them stays as the model said it, in
      // the log and to the model.
      call: { ...call, args: structuredClone(call.args) },
      stamp: { callId: call.callId, promptId: ctx.ids.promptId, turn: ctx.ids.turn },
      rawInput: request.args,
      written,
      announcedAt,
      secrets: createCallSecrets((name) => ctx.secret(name)),
      settled: Promise.withResolvers<void>(),
    }
  })
}

async function* runCall(
  scheduled: ScheduledCall,
  running: ReturnType<Execute>,
  { share, limits, now }: { share: number; limits: ResultLimits; now: () => number },
): AsyncGenerator<SessionEvent, void> {
  const { stamp, secrets } = scheduled
  try {
    for (;;) {
      const step = await running.next()
      if (step.done === true) {
        scheduled.outcome = cleanOutcome(secrets.without(step.value), limits)
        break
      }
      if (step.value.type === 'started') scheduled.begun = true
      yield updateEvent(secrets.without(step.value), stamp, now())
    }
  } finally {
    if (scheduled.outcome === undefined) await running.return(NOBODY_WAITS)
  }
  if (scheduled.outcome.forModel.length > share) scheduled.held = true
  else yield* settleCall(scheduled, now)
}

/** The outcome of a generator whose consumer has ended. */
const NOBODY_WAITS: ToolOutcome = { status: 'failed', reason: 'interrupted', forModel: '' }

async function* settleCall(scheduled: ScheduledCall, now: () => number): AsyncGenerator<SessionEvent, void> {
  if (scheduled.outcome === undefined) return
  yield outcomeEvent(scheduled.outcome, scheduled.stamp, now(), scheduled.call.tool.runs?.fatal)
  scheduled.settled.resolve()
}

/** Now that all lengths are known, shorten the longest as far as the batch needs it. */
async function* settleTruncated(
  batch: readonly ScheduledCall[],
  now: () => number,
): AsyncGenerator<SessionEvent, void> {
  const limit = lengthLimit(batch.map(({ outcome }) => outcome?.forModel.length ?? 0))
  for (const scheduled of batch.filter(({ held }) => held === true)) {
    if (scheduled.outcome !== undefined) scheduled.outcome = shortenOutcome(scheduled.outcome, limit)
    yield* settleCall(scheduled, now)
  }
}

/** The context of the call's tool. */
function callContext(
  scheduled: ScheduledCall,
  left: AbortSignal,
  ctx: BatchContext,
  limits: ResultLimits,
): CallContext {
  const { callId } = scheduled.call
  const signal = AbortSignal.any([ctx.signal, ctx.cancelSignal(callId), left])
  return {
    ids: { ...ctx.ids, callId },
    signal,
    sandbox: () => ctx.sandbox(signal, scheduled.call.tool.readOnly),
    output: {
      limits,
      readable: ctx.tools.listTools().some(({ runs }) => runs?.readsOutputs === true),
      save: (offset, bytes) => ctx.outputs.append(callId, offset, bytes),
      read: (from, to, of = callId) => ctx.outputs.read(of, from, to),
      stored: scheduled.settled.promise,
    },
    ask: () => ctx.approvals.of(callId).answer(),
    secret: (name) => scheduled.secrets.secret(name),
    log: ctx.log,
    events: () => ctx.events(),
    previous: ctx.before.previousAttempt(callId),
    now: ctx.now,
  }
}

/** The call with what its policies need. */
function policyCall(scheduled: ScheduledCall, ctx: BatchContext, order: CallOrder, at: number): PolicyCall {
  const { call } = scheduled
  const { callId } = call
  return {
    ...call,
    clock: createCallClock(scheduled.announcedAt, ranBefore(callId, ctx)),
    approval: ctx.approvals.of(callId),
    judge: (args, by) => ctx.approvals.judge({ ...call, args }, by),
    refusalNow: async () => await ctx.approvals.refusal?.(callId),
    inOrder: () => order.enter(at),
    begunBefore: ctx.before.begunBefore(callId),
    hasBegun: () => scheduled.begun === true || ctx.before.begunBefore(callId),
  }
}

/**
 * The innermost: the tool itself, not before its turn. One that does not say that it runs has it
 * said for it.
 */
async function* runTool(call: PolicyCall, ctx: CallContext): AsyncGenerator<ToolUpdate, ToolOutcome> {
  await orAborted(call.inOrder(), ctx.signal)
  // In the log before it can have any effect, whether or not the tool thinks of it: after a crash
  // nothing is done twice.
  const first = ctx.previous === undefined && call.tool.runs?.repeatable !== true
  if (first) yield { type: 'started' }
  const running = call.tool.execute(call.args, ctx)
  let finished = false
  try {
    let step = await running.next()
    const begins = step.done === true ? undefined : sanitizeUpdate(step.value)
    const starts = begins?.type === 'started' ? begins : undefined
    if (!first && ctx.previous === undefined && starts === undefined) yield { type: 'started' }
    if (first && starts !== undefined && starts.attempt === undefined) step = await running.next()
    for (; step.done !== true; step = await running.next()) yield sanitizeUpdate(step.value)
    finished = true
    return validateOutcome(step.value, call.tool.output)
  } finally {
    if (!finished) await running.return(NOBODY_WAITS)
  }
}

/** All calls together; where one ends, however it does, those behind it may begin. */
function runInOrder(
  running: readonly (() => AsyncGenerator<SessionEvent, void>)[],
  order: CallOrder,
): AsyncGenerator<SessionEvent, void[]> {
  return mergeGenerators(
    running.map(
      (run, at) =>
        async function* released(): AsyncGenerator<SessionEvent, void> {
          try {
            yield* run()
          } finally {
            order.over(at)
          }
        },
    ),
  )
}

/** `merged`, with `left` aborted as soon as the consumer ends us instead of asking for more. */
async function* abandonable<T, R>(
  merged: AsyncGenerator<T, R>,
  left: AbortController,
): AsyncGenerator<T, void> {
  try {
    for (;;) {
      const step = await merged.next()
      if (step.done === true) return
      let wanted = false
      try {
        yield step.value
        wanted = true
      } finally {
        if (!wanted) left.abort(SHUTDOWN)
      }
    }
  } finally {
    await merged.return(undefined as R)
  }
}

/** Milliseconds since the command that is attached to again was started, by an earlier process. */
function ranBefore(callId: string, { before, now }: BatchContext): number {
  const begunAt = before.previousAttempt(callId) === undefined ? undefined : before.begunAt(callId)
  return begunAt === undefined ? 0 : Math.max(0, now() - begunAt)
}

/**
 * A clock that has been waiting since `since` (by `performance.now()`) and starts to run when it is
 * made. `ranMs`: it has run before.
 */
function createCallClock(since: number, ranMs: number): CallClock {
  const began = performance.now()
  let waited = began - since
  return {
    async wait(what) {
      const from = performance.now()
      try {
        return await what
      } finally {
        waited += performance.now() - from
      }
    },
    timing() {
      const total = performance.now() - since
      return { waitMs: Math.round(waited), runMs: Math.max(0, Math.round(total - waited)) + ranMs }
    },
  }
}

/**
 * A refused call takes the same way as every other: it is announced, counted and settled once. So a
 * call of a tool that does not exist gets this one, which cannot do anything.
 */
const unknownTool: Tool = {
  name: 'unknown_tool',
  description: 'Stands in for a tool that does not exist.',
  kind: 'other',
  input: z.looseObject({}),
  readOnly: true,
  title: () => 'Unknown tool',
  // oxlint-disable-next-line require-yield
  async *execute() {
    throw new ToolError('unknown_tool', 'There is no such tool.')
  },
}

/** `tool`: the registered tool, when the name was right and the arguments were not. */
function refusedCall(request: AdaptedToolRequest, tool: Tool | undefined): ToolCall {
  const { callId, name } = request
  const refusal = isRefused(request)
    ? request.refusal
    : { reason: 'unknown_tool' as const, message: `There is no tool named ${name}.` }
  return {
    callId,
    name,
    args: {},
    tool: tool ?? { ...unknownTool, title: () => `Unknown tool ${name.slice(0, 64)}` },
    refusal,
  }
}
