/**
 * The agent as plain functions: the model client, and one session on a store in memory, without a
 * database and without a sandbox, for programs of your own and for tests.
 *
 *     import { createHttpModel } from '@sandlot/ai-agent/model/http-model'
 *     import { memoryLog } from '@sandlot/ai-agent/plain/log-store'
 *     import { plainTool } from '@sandlot/ai-agent/plain/plain-tool'
 *     import { runAgent } from '@sandlot/ai-agent/run-agent'
 *
 *     const model = createHttpModel({ baseUrl: 'http://127.0.0.1:8000/v1', apiKey: '', model: 'qwen3' })
 *     const run = runAgent({ model, tools: [plainTool({ … })], log: memoryLog(), prompt: 'What is the weather?' })
 *     let step = await run.next()
 *     for (; step.done !== true; step = await run.next()) show(step.value)   // events, live and settled
 *     step.value.text                                                          // the answer
 */
import { z } from 'zod'
import { type SessionEvent, metaOf, sandlotEventOf, seqOf } from '@sandlot/shared/chat/events'
import type { OnError } from '@sandlot/shared/chat/sandlot-event'
import { SandboxError } from '@sandlot/sandbox/errors'
import type { Sandbox } from '@sandlot/sandbox/sandbox'
import { RuleRegistry } from '../approval/rule-registry.ts'
import { createPolicies } from '../calls/policies/index.ts'
import { createToolMetrics } from '../metrics/tool-metrics.ts'
import { createScheduler } from '../calls/scheduler.ts'
import { type PromptEnd, promptEndOf, unfinishedPrompt } from '../history/read-log.ts'
import { turnsOf } from '../history/model-messages.ts'
import type { PromptBudgets } from '../limits/budgets.ts'
import { SYSTEM_PROMPT, WORKSPACE } from '../loop/system-prompt.ts'
import { RETRY_RULES, type RetryRules } from '../loop/retry.ts'
import type { Model, ModelAnswer, ModelChunk, ModelImage, ModelMessage, ModelTool } from '../model/model.ts'
import { type HttpModelOptions, createHttpModel } from '../model/http-model.ts'
import {
  UNRESTRICTED,
  NO_JOBS,
  NO_SECRETS,
  PLAIN_RESTARTS,
  type RunnerParts,
  UNKNOWN_ACCESS,
} from '../session/parts.ts'
import { Session } from '../session/session.ts'
import { createRegistry } from '../tools/registry.ts'
import { SHUTDOWN } from '../tools/tool-error.ts'
import type { Tool } from '../tools/tool.ts'
import type { Log } from '../log.ts'
import { Inbox } from './inbox.ts'
import { type LogStore, notTheLast } from './log-store.ts'
import { NO_QUEUE } from '../limits/prompt-queue.ts'
import { MAX_OUTPUT_BYTES } from './memory-outputs.ts'
import { MemoryStore } from './memory-store.ts'

/**
 * One request to an OpenAI-compatible endpoint. `onPiece` gets what arrives; resolves with the
 * whole answer, rejects with `ModelError` with its class, or the signal's reason. No retries:
 * `runAgent` makes them.
 */
export function askOnce(
  options: HttpModelOptions & { messages: readonly ModelMessage[]; tools?: readonly ModelTool[] },
  signal: AbortSignal = new AbortController().signal,
  onPiece: (piece: ModelChunk) => void = () => undefined,
): Promise<ModelAnswer> {
  const { messages, tools = [], ...about } = options
  return createHttpModel(about).stream({ messages, tools }, signal, onPiece)
}

export interface RunOptions {
  model: Model
  tools: readonly Tool[]
  /** The session. What an earlier run left unfinished in it is finished first. */
  log: LogStore
  /**
   * Absent: only what is unfinished is finished. `requestId`: yours, one for each prompt of the
   * log. A prompt that the log has under this id is not made again: what waits behind it is run,
   * and its end is what there is to return.
   */
  prompt?: string | { text: string; images?: readonly ModelImage[]; onError?: OnError; requestId?: string }
  inbox?: Inbox
  /**
   * Aborted with reason `'cancelled'` (default) it is a Stop: every call gets its outcome, the
   * history stays valid.
   */
  signal?: AbortSignal
  system?: string
  fallbacks?: readonly Model[]
  /** Model answers a prompt. Default 100. */
  maxTurns?: number
  /** Limits of one prompt: a day and its user exist in a session only. */
  budgets?: PromptBudgets
  /** Omitted members are those of `RETRY_RULES`. */
  retry?: Partial<RetryRules>
  /** 1–10, default 10. */
  maxConcurrentTools?: number
  /** Milliseconds of a call whose tool says nothing. Default 60,000. */
  toolTimeoutMs?: number
  /** Absent: there is none, and a call that needs one fails with that reason. */
  sandbox?: () => Promise<Sandbox>
  /** Epoch milliseconds. Default `Date.now`. */
  now?: () => number
  warnings?: Log
}

/** The end of the last prompt. `text`: the answer, or the sentence that explains its absence. */
export type RunResult = Omit<PromptEnd, 'text'> & { text: string }

/** Every log is a store of one session. */
const SESSION = { id: 'plain', userId: 'plain', cwd: WORKSPACE, mode: 'yolo' } as const
/** The store of each log, so that later runs on it read the output of earlier calls. */
const stores = new WeakMap<LogStore, MemoryStore>()

/**
 * Runs a prompt, and those queued after it, to their ends. Yields every event, live and settled; a
 * settled one is stored before it is yielded, and nothing but the model's answer continues before
 * the next one is requested. Ending the generator early is a crash: the next run on the same log
 * resumes from there. Throws when there is neither a prompt nor anything unfinished,
 * `ToolDefinitionError` for tools and `RangeError` for numbers that cannot be used (before anything
 * is stored), and errors of the store: also when another run has written to the log.
 */
export async function* runAgent(options: RunOptions): AsyncGenerator<SessionEvent, RunResult> {
  const { log, inbox = new Inbox(), signal = new AbortController().signal, now = Date.now } = options
  const leaving = new AbortController()
  checkLimits(options)
  const store = stores.get(log) ?? new MemoryStore(() => log)
  stores.set(log, store)
  const parts = partsOf(options, store, leaving.signal)
  const row =
    (await store.sessions.get(SESSION.id)) ?? (await store.sessions.create({ ...SESSION, at: now() }))
  // With a title, so that it makes none.
  const session = await Session.load({ ...row, ...SESSION, title: '' }, parts, () => undefined)

  const attend = async (): Promise<void> => {
    for (const { toolCallId } of session.pendingApprovals()) await session.refuse(toolCallId, 'unattended')
    // After a Stop a message would be the next prompt: it waits for the next run.
    if (signal.aborted && session.running) return
    for (const { text, as } of inbox.waiting) {
      await session.hold(text, as)
      inbox.stored(1)
    }
  }
  let given = options.prompt
  let known: string | undefined
  const begin = async (): Promise<boolean> => {
    await attend()
    if (given !== undefined && unfinishedPrompt(session.log) === undefined) {
      const { text, ...more } = typeof given === 'string' ? { text: given } : given
      given = undefined
      const { promptId, duplicate } = await session.prompt(text, more)
      if (!duplicate) return true
      known = promptId
    }
    return session.goOn()
  }
  // A failed store is thrown below.
  const stop = (): void =>
    void session.cancel(signal.reason === 'interrupted' ? 'interrupted' : 'cancelled').catch(() => undefined)
  signal.addEventListener('abort', stop)

  let seen = session.seq
  let last: string | undefined
  try {
    for (let more = true; more;) {
      const events = session.subscribe(seen, true)
      more = !(signal.aborted && last !== undefined) && (await begin())
      if (signal.aborted) stop()
      await attend()
      void session.settled().then(events.close)
      for (const event of events.catchUp) yield event
      for await (const event of events.live) {
        seen = seqOf(event) ?? seen
        if (sandlotEventOf(event)?.type === 'prompt_ended') last = metaOf(event).promptId
        yield event
        await attend()
      }
      store.throwFailure(SESSION.id)
    }
    const promptId = known ?? last
    if (promptId === undefined) throw new TypeError('There is no prompt to run, and none to go on with.')
    return resultOf(session.log, promptId)
  } catch (error) {
    throw session.lost ? notTheLast(session.seq) : error
  } finally {
    signal.removeEventListener('abort', stop)
    leaving.abort(SHUTDOWN)
    session.forget()
  }
}

function resultOf(events: readonly SessionEvent[], promptId: string): RunResult {
  const end = promptEndOf(events, promptId)
  if (end === undefined) throw new TypeError(`Prompt ${promptId} has no end in its log.`)
  return { ...end, text: end.text ?? turnsOf(events, promptId).at(-1)?.text ?? '' }
}

/** The parts of a session in which everything is allowed, and only the log is stored. */
function partsOf(options: RunOptions, store: MemoryStore, leaving: AbortSignal): RunnerParts {
  const { model, fallbacks, maxTurns = 100, budgets, retry = {}, now = Date.now } = options
  const registry = createRegistry()
  // The system prompt is the program's: no tool adds to it.
  registry.register(
    ...options.tools.map((tool): Tool => ({ ...tool, runs: { ...tool.runs, hint: undefined } })),
  )
  const scheduler = createScheduler({
    maxConcurrent: options.maxConcurrentTools ?? 10,
    policies: createPolicies({
      metrics: createToolMetrics(),
      toolTimeoutMs: options.toolTimeoutMs ?? 60_000,
      outputLimitBytes: MAX_OUTPUT_BYTES,
      approvalTtlMs: 86_400_000,
    }),
  })
  const noRules = {
    list: () => Promise.resolve([]),
    add: () => Promise.resolve(),
    revoke: () => Promise.resolve(false),
  }
  return {
    store,
    models: { model, fallbacks },
    prompts: {
      system: options.system ?? SYSTEM_PROMPT,
      // Undefined members have their defaults.
      retry: {
        attempts: retry.attempts ?? RETRY_RULES.attempts,
        baseMs: retry.baseMs ?? RETRY_RULES.baseMs,
        capMs: retry.capMs ?? RETRY_RULES.capMs,
        longestWaitMs: retry.longestWaitMs ?? RETRY_RULES.longestWaitMs,
      },
      namesChats: false,
    },
    calls: {
      tools: () => Promise.resolve(registry),
      runCalls: (calls, context) => scheduler.run(calls, context),
      sandbox: () =>
        options.sandbox?.() ??
        Promise.reject(new SandboxError('engine_unavailable', 'There is no sandbox here.')),
      rules: new RuleRegistry(noRules, { deployment: [], remember: 'never', lastMs: undefined }, now),
      externalAccess: () => UNKNOWN_ACCESS,
      secrets: NO_SECRETS,
    },
    users: { ...UNRESTRICTED, limitsOf: () => ({ maxTurns, budgets }) },
    jobs: NO_JOBS,
    restarts: PLAIN_RESTARTS,
    promptQueue: NO_QUEUE,
    leaving,
    ending: new AbortController().signal,
    now,
    log: options.warnings ?? { info: () => undefined, warn: () => undefined },
  }
}

/** `Infinity` is a way to say that there is no limit; `NaN` says nothing. */
const atLeast = (least: number) =>
  z.custom<number>((value) => typeof value === 'number' && value >= least, `a number from ${least} on`)
const amount = atLeast(0)
/** Longer, and Node waits for a millisecond. */
const wait = z
  .number()
  .min(0)
  .max(2 ** 31 - 1)
const limits = z.object({
  maxTurns: atLeast(1).optional(),
  maxConcurrentTools: z.int().min(1).max(10).optional(),
  toolTimeoutMs: atLeast(1).optional(),
  budgets: z
    .object({
      calls: amount.optional(),
      tokens: amount.optional(),
      cost: amount.optional(),
      promptMs: amount.optional(),
    })
    .optional(),
  retry: z
    .object({
      attempts: amount.optional(),
      baseMs: wait.optional(),
      capMs: wait.optional(),
      longestWaitMs: wait.optional(),
    })
    .optional(),
})

/**
 * A limit that is no number would limit nothing. Throws `RangeError`, which names each number that
 * cannot be meant.
 */
function checkLimits(options: object): void {
  const { error } = limits.safeParse(options)
  if (error === undefined) return
  const problems = error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`)
  throw new RangeError(`This run cannot begin: ${problems.join('; ')}.`)
}
