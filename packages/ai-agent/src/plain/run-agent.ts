/**
 * The agent without everything round it: the model client and the loop as plain functions, with a list in memory instead of a
 * database and no sandbox, for programs of your own and for tests.
 *
 *     import { createOpenAIModel } from '@sandlot/ai-agent/model/openai'
 *     import { memoryLog } from '@sandlot/ai-agent/plain/log-store'
 *     import { plainTool } from '@sandlot/ai-agent/plain/plain-tool'
 *     import { runAgent } from '@sandlot/ai-agent/run-agent'
 *
 *     const model = createOpenAIModel({ baseUrl: 'http://127.0.0.1:8000/v1', apiKey: '', model: 'qwen3' })
 *     const run = runAgent({ model, tools: [plainTool({ … })], log: memoryLog(), prompt: 'What is the weather?' })
 *     let step = await run.next()
 *     for (; step.done !== true; step = await run.next()) show(step.value)   // events, live and settled
 *     step.value.text                                                          // the answer
 */
import { type SessionEvent, isLive } from '@sandlot/shared/events'
import { newId } from '@sandlot/shared/ids'
import { SandboxError } from '@sandlot/sandbox/errors'
import type { Sandbox } from '@sandlot/sandbox/sandbox'
import { runPrompt } from '../loop/agent-loop.ts'
import { commandIn } from '../compaction/command.ts'
import {
  type PromptEnd,
  promptEndOf,
  promptUnder,
  queuedMessages,
  unfinishedPrompt,
} from '../history/history.ts'
import { turnsOf } from '../history/items.ts'
import type { PromptBudgets } from '../limits/budgets.ts'
import type { OnError } from '@sandlot/shared/sandlot-event'
import { RETRY_RULES, type RetryRules } from '../loop/retry.ts'
import type { Model, ModelAnswer, ModelChunk, ModelImage, ModelMessage, ModelTool } from '../model/model.ts'
import { type OpenAIModelOptions, createOpenAIModel } from '../model/openai.ts'
import { Inbox } from './inbox.ts'
import { type LogStore, numbered } from './log-store.ts'
import { checkLimits } from './run-limits.ts'
import { type Outputs, MAX_OUTPUT_BYTES, createOutputs } from './outputs.ts'
import { createPolicies } from '../calls/policies/index.ts'
import { createToolMetrics } from '../metrics/tool-metrics.ts'
import { SYSTEM_PROMPT } from '../loop/prompt.ts'
import type { BatchContext } from '../calls/batch.ts'
import { callsBefore } from '../session/calls-before.ts'
import { createScheduler } from '../calls/scheduler.ts'
import {
  imageMessages,
  promptIdOf,
  promptStarted,
  queuedMessage,
  sentMessage,
  userMessage,
} from '../history/session-messages.ts'
import { type ToolRegistry, createRegistry } from '../tools/registry.ts'
import type { Tool, ToolLog } from '../tools/tool.ts'

/**
 * One request to an OpenAI-compatible endpoint. Yields what arrives, returns the whole message; throws `ModelError` with its class, or
 * the signal's reason. No retries: `runAgent` makes them.
 */
export function askOnce(
  options: OpenAIModelOptions & { messages: readonly ModelMessage[]; tools?: readonly ModelTool[] },
  signal: AbortSignal = new AbortController().signal,
): AsyncGenerator<ModelChunk, ModelAnswer> {
  const { messages, tools = [], ...about } = options
  return createOpenAIModel(about).stream({ messages, tools }, signal)
}

export interface RunOptions {
  model: Model
  tools: readonly Tool[]
  /** The session. What an earlier run left unfinished in it is finished first. */
  log: LogStore
  /**
   * Absent: only what is unfinished is finished. `requestId`: yours, one for each prompt of the log. A prompt that the log has
   * under this id is not made again: what waits behind it is run, and its end is what there is to return.
   */
  prompt?: string | { text: string; images?: readonly ModelImage[]; onError?: OnError; requestId?: string }
  inbox?: Inbox
  /** Aborted with reason `'cancelled'` (default) it is a Stop: every call gets its outcome, the history stays valid. */
  signal?: AbortSignal
  system?: string
  fallbacks?: readonly Model[]
  /** Model answers a prompt. Default 100. */
  maxTurns?: number
  /** Of one prompt: a day and its user are known to a session only. */
  budgets?: PromptBudgets
  /** What it leaves out is as `RETRY_RULES` says. */
  retry?: Partial<RetryRules>
  /** 1–10, default 10. */
  maxConcurrentTools?: number
  /** Milliseconds of a call whose tool says nothing. Default 60,000. */
  toolTimeoutMs?: number
  /** Absent: there is none, and a call that needs one fails with that reason. */
  sandbox?: () => Promise<Sandbox>
  /** Epoch milliseconds. Default `Date.now`. */
  now?: () => number
  warnings?: ToolLog
}

/** How the last prompt ended. `text`: the answer, or the sentence that says why there is none. */
export type RunResult = Omit<PromptEnd, 'text'> & { text: string }

/**
 * Run a prompt, and those that wait behind it, to their ends. Yields every event, live and settled; a settled one is stored
 * before it is yielded. Ending the generator early is a crash: the next run on the same log goes on from there. Throws when there is
 * neither a prompt nor anything unfinished, `ToolDefinitionError` for tools and `RangeError` for numbers that cannot be used (before
 * anything is stored), and what the store throws: also when another run has written to the log.
 */
export async function* runAgent(options: RunOptions): AsyncGenerator<SessionEvent, RunResult> {
  const { log: store, now = Date.now, inbox = new Inbox() } = options
  const registry = createRegistry()
  // Before anything is stored.
  checkLimits(options)
  registry.register(...options.tools)
  const events: SessionEvent[] = [...(await store.read())]
  const outputs = createOutputs()
  const append = async (group: readonly SessionEvent[]): Promise<readonly SessionEvent[]> => {
    const stored = numbered(group, events.length)
    await store.append(stored, events.length)
    events.push(...stored)
    return stored
  }
  // What is sent is in the log as soon as anything is, so that it outlives this process; until then the inbox has it.
  const takeIn = async (promptId?: string): Promise<readonly SessionEvent[]> => {
    const messages = inbox.waiting.map((message) => {
      const messageId = newId('m')
      return queuedMessage({ ...message, messageId }, promptId ?? promptIdOf(messageId), now())
    })
    if (messages.length === 0) return []
    const stored = await append(messages)
    inbox.stored(messages.length)
    return stored
  }
  let last: string | undefined
  let resumed = true
  let running = unfinishedPrompt(events)?.promptId
  const known = promptUnder(events, requestIdOf(options.prompt))
  let prompt = known === undefined ? options.prompt : undefined
  yield* await takeIn(running)
  for (;;) {
    if (running === undefined) {
      const started = startOf(events, prompt, options.model.name, now())
      if (started === undefined) break
      prompt = undefined
      running = started.promptId
      resumed = false
      yield* await append(started.events)
    }
    const promptId = running
    for await (const group of loopOn(options, registry, outputs, events, promptId, resumed, now)) {
      yield* await takeIn(promptId)
      const [first] = group
      if (first !== undefined && isLive(first)) yield first
      else yield* await append(group)
    }
    yield* await takeIn(promptId)
    last = promptId
    running = undefined
    const { reason } = resultOf(events, promptId)
    if (reason === 'cancelled' || reason === 'interrupted') break
  }
  const result = known ?? last
  if (result === undefined) throw new TypeError('There is no prompt to run, and none to go on with.')
  return resultOf(events, result)
}

function requestIdOf(prompt: RunOptions['prompt']): string | undefined {
  return typeof prompt === 'object' ? prompt.requestId : undefined
}

/** The beginning of the next prompt: the one that was given, else the first that waits. */
function startOf(
  events: readonly SessionEvent[],
  given: RunOptions['prompt'],
  model: string,
  at: number,
): { promptId: string; events: SessionEvent[] } | undefined {
  const waiting = queuedMessages(events)
  if (given === undefined) {
    const [next] = waiting
    if (next === undefined) return undefined
    const promptId = promptIdOf(next.messageId)
    return {
      promptId,
      events: [
        promptStarted(next.messageId, { model, onError: next.onError }, at),
        ...sentMessage(next, promptId, at),
      ],
    }
  }
  const { text, images = [], onError, requestId } = typeof given === 'string' ? { text: given } : given
  const command = images.length > 0 ? undefined : commandIn(text)
  const messageId = newId('m')
  const promptId = promptIdOf(messageId)
  return {
    promptId,
    events: [
      promptStarted(messageId, { model, requestId, onError, command }, at),
      // What waited when an earlier prompt was stopped goes first.
      ...(command === undefined ? waiting : []).flatMap((message) => sentMessage(message, promptId, at)),
      userMessage(messageId, text, promptId, at),
      ...imageMessages(messageId, images, promptId, at),
    ],
  }
}

function resultOf(events: readonly SessionEvent[], promptId: string): RunResult {
  const end = promptEndOf(events, promptId)
  if (end === undefined) throw new TypeError(`Prompt ${promptId} has no end in its log.`)
  return { ...end, text: end.text ?? turnsOf(events, promptId).at(-1)?.text ?? '' }
}

/** The loop with everything that it works with. */
function loopOn(
  options: RunOptions,
  registry: ToolRegistry,
  outputs: Outputs,
  events: readonly SessionEvent[],
  promptId: string,
  resumed: boolean,
  now: () => number,
): ReturnType<typeof runPrompt> {
  const scheduler = createScheduler({
    maxConcurrent: options.maxConcurrentTools ?? 10,
    policies: createPolicies({
      metrics: createToolMetrics(),
      toolTimeoutMs: options.toolTimeoutMs ?? 60_000,
      outputLimitBytes: MAX_OUTPUT_BYTES,
      approvalTtlMs: 86_400_000,
    }),
  })
  const leaving = new AbortController().signal
  const signal = options.signal ?? leaving
  const warnings = options.warnings ?? SILENT
  return runPrompt({
    promptId,
    resumed,
    log: () => events,
    model: options.model,
    fallbacks: options.fallbacks,
    system: options.system ?? SYSTEM_PROMPT,
    tools: registry.modelTools(),
    maxTurns: options.maxTurns ?? 100,
    budgets: options.budgets,
    retry: completed(options.retry),
    signal,
    leaving,
    runCalls: (calls, context) => scheduler.run(calls, context),
    batchContext: (turn) =>
      batchContext({ ...options, now, warnings }, registry, outputs, events, promptId, turn, signal),
    now,
    warn: (fields, message) => warnings.warn(fields, message),
  })
}

/** What is absent or undefined is as usual. */
function completed({ attempts, baseMs, capMs, longestWaitMs }: Partial<RetryRules> = {}): RetryRules {
  return {
    attempts: attempts ?? RETRY_RULES.attempts,
    baseMs: baseMs ?? RETRY_RULES.baseMs,
    capMs: capMs ?? RETRY_RULES.capMs,
    longestWaitMs: longestWaitMs ?? RETRY_RULES.longestWaitMs,
  }
}

const SILENT: ToolLog = { info: () => undefined, warn: () => undefined }

/** Everything is allowed, nothing waits for a person, outputs stay in memory. */
function batchContext(
  { sandbox, now, warnings }: Pick<RunOptions, 'sandbox'> & { now: () => number; warnings: ToolLog },
  tools: BatchContext['tools'],
  outputs: Outputs,
  events: readonly SessionEvent[],
  promptId: string,
  turn: number,
  signal: AbortSignal,
): BatchContext {
  const never = new AbortController().signal
  const nobody = { allowed: false, by: 'unattended' }
  return {
    sessionId: 'plain',
    userId: 'plain',
    promptId,
    turn,
    tools,
    signal,
    cancelSignal: () => never,
    mode: () => 'yolo',
    sandbox: () =>
      sandbox?.() ?? Promise.reject(new SandboxError('engine_unavailable', 'There is no sandbox here.')),
    approval: () => ({ state: 'none', answer: () => Promise.resolve(nobody) }),
    judge: () => Promise.resolve({ verdict: 'allow', why: [], options: [] }),
    ...callsBefore(events),
    previousAttempt: () => undefined,
    appendOutput: (callId, offset, bytes) => outputs.append(callId, offset, bytes),
    readOutput: (callId, from, to) => outputs.read(callId, from, to),
    events: () => events,
    now,
    log: warnings,
  }
}
