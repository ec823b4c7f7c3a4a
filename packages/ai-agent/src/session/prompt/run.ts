/**
 * One run of a prompt in this process: filled by the steps of its start, read by the loop and by
 * the steps of its end.
 */
import { type EventGroup, makeSandlotEvent } from '@sandlot/shared/chat/events'
import type { BatchContext, BatchOutputs } from '../../calls/batch.ts'
import { branchOf } from '../../history/branch.ts'
import { callsBefore } from '../../history/read-log.ts'
import { type Spent, spentOf } from '../../limits/period-budgets.ts'
import type { PromptSlot } from '../../limits/prompt-queue.ts'
import { runPrompt } from '../../loop/agent-loop.ts'
import type { LoopContext } from '../../loop/context.ts'
import { ADMINISTRATOR_TEXT } from '../../loop/endings.ts'
import { levelOfPrompt, modelOfPrompt, withLevel } from '../../loop/model-choice.ts'
import { systemPrompt } from '../../loop/system-prompt.ts'
import { MeasuredPrompt } from '../../metrics/measured-prompt.ts'
import type { Model } from '../../model/model.ts'
import type { ToolRegistry } from '../../tools/registry.ts'
import { folderOfChat } from '../../tools/workspace-path.ts'
import type { PromptChanges } from '../../workspace/prompt-changes.ts'
import type { SessionCore } from '../core.ts'
import { rulingOf } from '../rulings.ts'
import type { Running } from '../running.ts'

export type RunTools = Pick<ToolRegistry, 'getTool' | 'listTools' | 'modelTools'>

/** The session's other parts, called when a prompt changes what they depend on. */
export interface RunListeners {
  /** The end of a prompt is stored. */
  notifyWaiters: () => void
  /** A background command has started, or no prompt polls them any more. */
  pollJobs: () => void
}

export class PromptRun {
  readonly core: SessionCore
  readonly running: Running
  /** An earlier process began it, or it broke off. */
  readonly resumed: boolean
  /** See `LoopContext`. */
  readonly resumeCounts: boolean
  readonly listeners: RunListeners
  /** Aborted by Stop, and when the session is released. */
  readonly signal: AbortSignal
  /** The folder of its chat, relative to the workspace; undefined: the workspace itself. */
  readonly folder: string | undefined
  slot: PromptSlot | undefined
  limits: Pick<LoopContext, 'maxTurns' | 'budgets'>
  tools: RunTools = { getTool: () => undefined, listTools: () => [], modelTools: () => [] }
  /** Undefined: changes of the workspace are not reported. */
  changes: PromptChanges | undefined
  /** Undefined before the loop begins, and where nothing is measured. */
  measured: MeasuredPrompt | undefined

  constructor(
    core: SessionCore,
    running: Running,
    of: { resumed: boolean; resumeCounts: boolean },
    listeners: RunListeners,
  ) {
    this.core = core
    this.running = running
    this.resumed = of.resumed
    this.resumeCounts = of.resumeCounts
    this.listeners = listeners
    this.signal = AbortSignal.any([running.stop.signal, core.released])
    this.folder = folderOfChat(core.cwd)
    this.limits = core.parts.users.limitsOf(this.person)
  }

  get promptId(): string {
    return this.running.promptId
  }

  /** The user whose limits and usage it counts for. */
  get person(): string {
    return this.running.chargedTo ?? this.core.userId
  }

  /** Each time as of then: a prompt may run into the next day. */
  get spent(): Spent {
    const {
      store: { usage },
      now,
    } = this.core.parts
    return {
      own: (period) => spentOf(usage, this.person, now()).own(period),
      together: (...asked) => spentOf(usage, this.person, now()).together(...asked),
    }
  }

  /** Its groups of events, from a loop that has not begun. */
  groups(): AsyncIterable<EventGroup> {
    const { promptId, core } = this
    const { metrics } = core.parts
    const trace = metrics?.tracing?.prompt({ promptId, sessionId: core.id, userId: core.userId })
    this.measured = metrics && new MeasuredPrompt(metrics, undefined, trace)
    const groups = runPrompt(this.#loopContext())
    return this.measured?.groups(groups) ?? groups
  }

  #loopContext(): LoopContext {
    const { core, running, promptId } = this
    const { log, prompts, calls, jobs, ...parts } = core.parts
    return {
      ...this.limits,
      ...this.#models(),
      promptId,
      resumed: this.resumed,
      resumeCounts: this.resumeCounts,
      blockedAgent: parts.restarts.blockedAgent(promptId),
      system: systemPrompt(prompts.system, this.tools.listTools(), this.folder),
      tools: this.tools.modelTools(),
      slot: this.slot,
      spent: this.spent,
      retry: prompts.retry,
      runCalls: calls.runCalls,
      batchContext: (turn) => this.#batchContext(turn),
      pollJobs: (open) => jobs.poll(core.userId, open),
      log: () => branchOf(core.log),
      show: (event) => core.journal.show(event),
      caughtUp: () => core.journal.caughtUp(),
      replays: {
        save: async (id, bytes) => (await this.#append(id, 0, bytes)) === undefined,
        load: (id) => parts.store.outputs.read(core.id, id, 0, Number.MAX_SAFE_INTEGER),
      },
      signal: running.stop.signal,
      stopText: () => (running.stoppedByAdministrator ? ADMINISTRATOR_TEXT : undefined),
      released: core.released,
      now: parts.now,
      warn: (fields, message) => log.warn({ sessionId: core.id, ...fields }, message),
    }
  }

  #models(): Pick<LoopContext, 'model' | 'fallbacks'> {
    const { core, promptId, measured } = this
    const { models } = core.parts
    const level = levelOfPrompt(core.log, promptId)
    const watched = (one: Model): Model => measured?.model(one) ?? one
    return {
      model: watched(core.owned(modelOfPrompt(core.log, promptId, models))),
      fallbacks: models.fallbacks?.map((one) => watched(core.owned(withLevel(one, level)))),
    }
  }

  #batchContext(turn: number): BatchContext {
    const { core, running, promptId } = this
    const { id: sessionId, userId, approvals } = core
    const { store, calls, now, log } = core.parts
    const { secrets } = calls
    return {
      ids: { sessionId, userId, promptId, turn, folder: this.folder },
      tools: this.tools,
      signal: AbortSignal.any([running.stop.signal, core.released]),
      cancelSignal: (callId) => running.cancelOf(callId).signal,
      sandbox: (signal, readOnly) => this.#sandbox(turn, signal, readOnly),
      approvals: {
        of: (callId) => approvals.of(callId),
        judge: (call, by) => {
          running.judged.set(call.callId, { call, by })
          const at = { sessionId, promptId }
          return rulingOf({ call, by }, { userId, at, approvals, mode: core.effectiveMode, parts: calls })
        },
      },
      before: callsBefore(core.log),
      outputs: {
        append: (callId, offset, bytes) => this.#append(callId, offset, bytes),
        read: (callId, from, to) => store.outputs.read(sessionId, callId, from, to),
      },
      events: () => core.log,
      secret: (name) => secrets.get(userId, name),
      now,
      log,
    }
  }

  /** The user's sandbox; the time that it has no room is shown. */
  async #sandbox(turn: number, signal: AbortSignal, readOnly: boolean): ReturnType<BatchContext['sandbox']> {
    const { core, promptId } = this
    const acquired = await core.parts.calls.sandbox(core.userId, signal, (wait) => {
      const event = { type: 'line_waited', ...wait } as const
      core.journal.show(makeSandlotEvent(event, { promptId, turn, live: true }, core.parts.now()))
    })
    if (!readOnly) await this.changes?.watch(acquired)
    return acquired
  }

  #append(id: string, offset: number, bytes: Uint8Array): ReturnType<BatchOutputs['append']> {
    return this.core.asOwner(this.core.journal.appendOutput(id, offset, bytes))
  }
}
