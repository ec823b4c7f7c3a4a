/**
 * Runs the prompts of one session, one after another: drives the loop and stores what it yields.
 */
import { messageOf } from '@sandlot/shared/base/errors'
import {
  isOutcome,
  makeSandlotEvent,
  metaOf,
  sandlotEventOf,
  type EventGroup,
  type SessionEvent,
} from '@sandlot/shared/chat/events'
import { diffsId, type PromptDiffs } from '@sandlot/shared/chat/file-changes'
import { notOwner } from '@sandlot/storage/storage-error'
import type { FailureReason } from '@sandlot/shared/chat/reasons'
import { branchOf } from '../history/branch.ts'
import { runPrompt } from '../loop/agent-loop.ts'
import {
  promptEndOf,
  queuedMessages,
  sentBehindStop,
  type PromptEnd,
  type QueuedMessage,
  unfinishedPrompt,
  unqueued,
} from '../history/read-log.ts'
import { type Spent, spentOf } from '../limits/period-budgets.ts'
import { ADMINISTRATOR_TEXT } from '../loop/endings.ts'
import { chosenIn, levelOfPrompt, modelOfPrompt, replacedChoice, withLevel } from '../loop/model-choice.ts'
import { MeasuredPrompt } from '../metrics/measured-prompt.ts'
import type { Model } from '../model/model.ts'
import { storableGroup } from './outcome-images.ts'
import { PromptWaiters } from './prompt-waiters.ts'
import { inStep } from './running-step.ts'
import { PromptChanges } from '../workspace/prompt-changes.ts'
import type { Answers } from './answers.ts'
import { Running } from './running.ts'
import { batchContext } from './batch.ts'
import type { BatchContext } from '../calls/batch.ts'
import type { LoopContext } from '../loop/context.ts'
import { type OnBehalf, lowestCeiling } from './access.ts'
import { breakOff } from './break-off.ts'
import type { SessionCore } from './core.ts'
import { type PromptStart, promptIdOf, promptStarted, sentMessage } from '../history/session-messages.ts'
import { nameChat } from './title.ts'
import { systemPrompt } from '../loop/system-prompt.ts'
import { folderOfChat, inFolder } from '../tools/workspace-path.ts'
import type { ToolRegistry } from '../tools/registry.ts'
import { takeInstructions } from '../config/instructions.ts'
import { leftOutNote } from '../config/tool-offer.ts'
import { startsJob } from '../tools/background/jobs.ts'
import { commandId } from '../tools/sandbox-command/command-id.ts'

/** A prompt whose beginning is in the log. */
interface UnfinishedPrompt extends OnBehalf {
  promptId: string
  /** No client can answer an approval. */
  unattended: boolean
  /** An earlier process began it, or it broke off. */
  resumed?: boolean
  /** See `LoopContext`. */
  resumeCounts?: boolean
  /** A person has stopped it in between. */
  stopped?: boolean
}

export class Runner {
  readonly #core: SessionCore
  readonly #answers: Answers
  readonly #waiters = new PromptWaiters()

  readonly #onJobs: () => void

  /**
   * `onJobs` is called when a background command has been started, and when a prompt has ended and
   * no other follows.
   */
  constructor(core: SessionCore, answers: Answers, onJobs: () => void) {
    this.#core = core
    this.#answers = answers
    this.#onJobs = onJobs
  }

  /** See `PromptWaiters.wait`. */
  ended(promptId: string): Promise<PromptEnd> {
    return this.#waiters.wait(promptId, this.#core.state())
  }

  /** Something ended without a prompt: a message that waited was withdrawn. */
  notifyWaiters(): void {
    this.#waiters.notify(this.#core.state())
  }

  /**
   * Go on with the prompt that was begun and has no end: after a restart, and after a store that
   * failed had broken a prompt off in the middle. Only inside `inTurn`.
   */
  async resumeUnfinished(resumeCounts = true): Promise<void> {
    if (!(await this.#core.saveEnd())) return
    const begun = this.#core.running === undefined ? unfinishedPrompt(this.#core.log) : undefined
    if (begun === undefined) return
    this.start({ ...begun, resumed: true, resumeCounts })
    await this.#answers.denyUnanswerable()
  }

  /** See `Session.goOn`. Only inside `inTurn`. */
  async goOn(): Promise<boolean> {
    await this.resumeUnfinished()
    if (this.#core.running !== undefined) return true
    const next = this.#startOf(queuedMessages(this.#core.log).slice(0, 1))
    if (next === undefined) return false
    await this.#core.store(next.events)
    this.start(next)
    return true
  }

  /** Run it. */
  start({
    promptId,
    unattended,
    resumed = false,
    resumeCounts = true,
    stopped = false,
    ...onBehalf
  }: UnfinishedPrompt): void {
    const running = new Running(promptId, unattended, onBehalf)
    if (stopped) running.stop.abort('cancelled')
    else if (this.#core.parts.ending?.aborted === true) running.stop.abort('interrupted')
    this.#core.running = running
    this.#core.publishSummary()
    const step = { sessionId: this.#core.id, promptId }
    running.driven = inStep(step, () => this.#drive(running, resumed, resumeCounts))
  }

  /**
   * Consumes the loop: stores each group before the loop continues. Never rejects.
   */
  async #drive(running: Running, resumed: boolean, resumeCounts: boolean): Promise<void> {
    const core = this.#core
    const { released } = core
    try {
      await core.journal.caughtUp()
      const loop = await this.#openLoop(running, resumed, resumeCounts)
      if (loop === undefined) return
      const { measured, changes, groups } = loop
      for await (const group of measured?.groups(groups) ?? groups) {
        // Released: what is not stored never happened. The next start, or the next owner, resumes.
        if (released.aborted) return
        await this.#take(group, resumed, changes)
        await core.journal.caughtUp()
        if (released.aborted) return
      }
      if (measured?.ended !== undefined)
        core.parts.log.info(
          { event: 'prompt_ended', sessionId: core.id, promptId: running.promptId, ...measured.ended },
          'a prompt ended',
        )
    } catch (error) {
      if (released.aborted || core.releasedBy(error)) return
      const fields = { sessionId: core.id, promptId: running.promptId, error: messageOf(error) }
      core.parts.log.warn(fields, 'the prompt was interrupted by an error')
      const storeEnd = (end: SessionEvent): Promise<void> => this.#store([end])
      await breakOff({
        core,
        answers: this.#answers,
        waiters: this.#waiters,
        running,
        cause: error,
        storeEnd,
      })
    } finally {
      core.parts.promptQueue?.leave(running.promptId)
      if (core.lost) this.#lose()
    }
  }

  /** The loop of this prompt, not started yet. Undefined: the session has been released. */
  async #openLoop(running: Running, resumed: boolean, resumeCounts: boolean) {
    const core = this.#core
    const { released } = core
    const { metrics, now } = core.parts
    const { promptId } = running
    const signal = AbortSignal.any([running.stop.signal, released])
    const registry = await core.parts.tools(core.userId, signal, core.id)
    const folder = folderOfChat(core.cwd)
    const tools = folder === undefined ? registry : toolsIn(folder, registry)
    if (released.aborted) return undefined
    const note = leftOutNote(core.log, registry, promptId, now())
    if (note !== undefined) await core.inTurn(() => core.store([note]))
    await takeInstructions({
      promptId,
      resumed,
      log: branchOf(core.log),
      ask: async () => (await core.parts.instructions?.(core.userId, core.id)) ?? { text: '' },
      store: (events) => core.inTurn(() => core.store(events)),
      now,
    })
    const trace = metrics?.tracing?.prompt({ promptId, sessionId: core.id, userId: core.userId })
    const measured = metrics === undefined ? undefined : new MeasuredPrompt(metrics, undefined, trace)
    // The state when an earlier process began the prompt is unknown.
    const changes = resumed ? undefined : new PromptChanges(promptId, core.parts.log)
    const groups = runPrompt({
      ...this.#loopParts(running, signal),
      ...this.#models(promptId, measured),
      system: systemPrompt(core.parts.system, tools.listTools(), folder),
      tools: tools.modelTools(),
      resumed,
      resumeCounts,
      batchContext: (turn) => this.#batchContext({ running, turn, tools, folder, changes }),
    })
    return { measured, changes, groups }
  }

  #models(promptId: string, measured: MeasuredPrompt | undefined): Pick<LoopContext, 'model' | 'fallbacks'> {
    const core = this.#core
    const { models } = core.parts
    const level = levelOfPrompt(core.log, promptId)
    const watched = (one: Model): Model => measured?.model(one) ?? one
    return {
      model: watched(core.owned(modelOfPrompt(core.log, promptId, models))),
      fallbacks: models.fallbacks?.map((one) => watched(core.owned(withLevel(one, level)))),
    }
  }

  #loopParts(running: Running, signal: AbortSignal) {
    const core = this.#core
    const { log, pollJobs, ...parts } = core.parts
    const { promptId, chargedTo: person = core.userId } = running
    const limits = { maxTurns: parts.maxTurns, ...parts.limitsOf?.(person) }
    return {
      maxTurns: limits.maxTurns,
      budgets: limits.budgets,
      retry: parts.retry,
      slot: parts.promptQueue?.of({ id: promptId, person }, signal),
      runCalls: parts.runCalls,
      now: parts.now,
      spent: spentBy(core, running),
      pollJobs: pollJobs && ((jobs) => pollJobs(core.userId, jobs)),
      promptId,
      blockedAgent: parts.blockedAgent?.(promptId),
      log: () => branchOf(core.log),
      show: (event) => core.journal.show(event),
      caughtUp: () => core.journal.caughtUp(),
      signal: running.stop.signal,
      replays: {
        save: async (id, bytes) =>
          (await core.asOwner(core.journal.appendOutput(id, 0, bytes))) === undefined,
        load: (id) => core.parts.store.readOutput(core.id, id, 0, Number.MAX_SAFE_INTEGER),
      },
      stopText: () => (running.stoppedByAdministrator ? ADMINISTRATOR_TEXT : undefined),
      released: core.released,
      warn: (fields, message) => log.warn({ sessionId: core.id, ...fields }, message),
    } satisfies Partial<LoopContext>
  }

  #batchContext(
    of: Pick<Parameters<typeof batchContext>[0], 'running' | 'turn' | 'tools' | 'folder' | 'changes'>,
  ): BatchContext {
    const core = this.#core
    return batchContext({
      ...of,
      sessionId: core.id,
      userId: core.userId,
      log: () => core.log,
      approvals: core.approvals,
      appendOutput: (callId, offset, bytes) => core.asOwner(core.journal.appendOutput(callId, offset, bytes)),
      show: (event) => core.journal.show(event),
      released: core.released,
      mode: () => core.effectiveMode,
      parts: core.parts,
    })
  }

  async #take(group: EventGroup, resumed: boolean, changes: PromptChanges | undefined): Promise<void> {
    const core = this.#core
    if (resumed) await cancelOrphanedCommands(core, group)
    const { store } = core.parts
    const ending = promptEndIn(group) === undefined ? group : await this.#withChanges(group, changes)
    const storable = await storableGroup(ending, (bytes) => store.missingRoom(core.userId, bytes))
    await core.inTurn(() => this.#store(storable))
  }

  /** The prompt continues elsewhere; waiters for its end here are released. */
  #lose(): void {
    this.#core.running = undefined
    this.#waiters.notify(this.#core.state(), notOwner(this.#core.id))
  }

  /** Before the prompt's end, what it changed in the workspace; the diffs are stored first. */
  async #withChanges(group: EventGroup, changes: PromptChanges | undefined): Promise<EventGroup> {
    const core = this.#core
    const end = promptEndIn(group)
    const settled = await changes?.settle(core.log)
    if (settled === undefined || end === undefined || core.released.aborted) return group
    const { promptId } = metaOf(end)
    const { changed, diffs } = settled
    const stored = Buffer.from(JSON.stringify({ diffs } satisfies PromptDiffs))
    const storeFailed =
      diffs.length > 0 &&
      (await core.asOwner(core.journal.appendOutput(diffsId(promptId ?? ''), 0, stored))) !== undefined
    const files = storeFailed ? changed.files.map((file) => ({ ...file, diff: undefined })) : changed.files
    const event = makeSandlotEvent(
      { type: 'files_changed', ...changed, files },
      { promptId },
      core.parts.now(),
    )
    return group.flatMap((one) => (one === end ? [event, one] : [one]))
  }

  async #store(group: EventGroup): Promise<void> {
    const core = this.#core
    const end = promptEndIn(group)
    if (end === undefined) {
      if (isAlreadyWithdrawn(core.log, group)) return
      await core.store(group)
      if (group.some((event) => isOutcome(event) && startsJob(event))) this.#onJobs()
      const asked = group.some((event) => sandlotEventOf(event)?.type === 'approval_asked')
      if (!asked) return
      await this.#answers.denyUnanswerable()
      // A person may take hours; others work in the meantime.
      if (core.running !== undefined && core.approvals.pending().length > 0)
        core.parts.promptQueue?.leave(core.running.promptId)
      return
    }
    const ended = core.running
    core.parts.promptQueue?.leave(metaOf(end).promptId ?? '')
    const next = this.#startOf(messagesBehind(core.log, end))
    if (next === undefined) {
      await core.store(group)
      core.running = undefined
      core.publishSummary()
      this.#onJobs()
    } else {
      // In the same transaction: a crash in between would leave a message waiting for nothing.
      await core.store([...group, ...next.events])
      this.start(next)
    }
    if (ended !== undefined) core.runInBackground(nameChat(core, ended, spentBy(core, ended)))
    this.#waiters.notify(core.state())
  }

  /** The start of the prompt that these messages become: the last of them, with those before it. */
  #startOf(waited: readonly QueuedMessage[]): (UnfinishedPrompt & { events: EventGroup }) | undefined {
    const last = waited.at(-1)
    if (last === undefined) return undefined
    const { parts } = this.#core
    const { messageId, unattended = false, onError, author, chargedTo } = last
    const modeCeiling = lowestCeiling(waited)
    const promptId = promptIdOf(messageId)
    const at = parts.now()
    const start = { unattended, onError, author, chargedTo, modeCeiling }
    const begun = promptBeginning(messageId, this.#core, start, at)
    const sent = waited.flatMap((message) => sentMessage(message, promptId, at))
    return { promptId, unattended, modeCeiling, chargedTo, events: [...begun, ...sent] }
  }
}

/**
 * The prompt of this message with the model that was chosen, or where that may not be chosen any
 * more, with the first that may.
 */
export function promptBeginning(
  messageId: string,
  { log, parts, models }: Pick<SessionCore, 'log' | 'parts' | 'models'>,
  start: Omit<PromptStart, 'model' | 'thoughtLevel'>,
  at: number,
): [SessionEvent, ...SessionEvent[]] {
  const instead = replacedChoice(log, parts.models, models)
  if (instead === undefined) return [promptStarted(messageId, { ...chosenIn(log, models), ...start }, at)]
  const { model } = instead
  return [
    makeSandlotEvent({ type: 'model_chosen', ...instead }, {}, at),
    promptStarted(messageId, { ...instead, ...start }, at),
    makeSandlotEvent(
      { type: 'model_changed', model, why: 'not_allowed' },
      { promptId: promptIdOf(messageId) },
      at,
    ),
  ]
}

/** The tools as a chat with this folder has them. */
function toolsIn(
  folder: string,
  registry: ToolRegistry,
): Pick<ToolRegistry, 'getTool' | 'listTools' | 'modelTools'> {
  return {
    getTool(name) {
      const tool = registry.getTool(name)
      return tool && inFolder(tool, folder)
    },
    listTools: () => registry.listTools().map((tool) => inFolder(tool, folder)),
    modelTools: () => registry.modelTools(),
  }
}

function promptEndIn(group: EventGroup): SessionEvent | undefined {
  return group.find((event) => sandlotEventOf(event)?.type === 'prompt_ended')
}

/** Each time as of then: a prompt may run into the next day. */
function spentBy({ parts: { store, now }, userId }: SessionCore, { chargedTo = userId }: Running): Spent {
  return {
    own: (period) => spentOf(store, chargedTo, now()).own(period),
    together: (...asked) => spentOf(store, chargedTo, now()).together(...asked),
  }
}

/**
 * Queued messages that continue after this end: the last of them is the next prompt, with those
 * before it. After a Stop those are only messages sent after it; after a shutdown none.
 */
function messagesBehind(log: readonly SessionEvent[], end: SessionEvent): QueuedMessage[] {
  const { promptId = '' } = metaOf(end)
  const reason = promptEndOf([end], promptId)?.reason
  if (reason === 'interrupted') return []
  const waiting = queuedMessages(log)
  if (reason !== 'cancelled') return waiting.slice(0, 1)
  const behind = sentBehindStop(log, promptId)
  return waiting.slice(0, waiting.findIndex(({ messageId }) => messageId === behind?.messageId) + 1)
}

/**
 * The loop takes a message that was withdrawn after it had looked at the log: who wrote first has
 * it.
 */
function isAlreadyWithdrawn(log: readonly SessionEvent[], group: EventGroup): boolean {
  const [first] = group
  const taken = first === undefined ? undefined : sandlotEventOf(first)
  return taken?.type === 'message_unqueued' && unqueued(log, taken.messageId) !== undefined
}

/*
 * A call that was begun by an earlier process may run on in the sandbox while this one gives it the
 * outcome `cancelled`: Stop was in the log and the sandbox did not get it any more, or Stop
 * came before the call had found its command again. The sandbox gets it here, before the
 * outcome is stored; else the command would run to its time limit behind the user's back.
 */

/**
 * The outcome does not wait longer than this for a sandbox that neither wakes nor fails, in
 * milliseconds.
 */
const PATIENCE_MS = 10_000
/** From TERM to KILL. */
const GRACE_MS = 1_000
const ENDED_BY_US: ReadonlySet<FailureReason | undefined> = new Set(['cancelled', 'timeout', 'interrupted'])

interface Attempt {
  promptId: string
  turn: number
  callId: string
  n: number
  boot: string
}

/**
 * End the commands of the calls that these outcomes say we have ended. `group`: not stored yet.
 * Never rejects.
 */
async function cancelOrphanedCommands(core: SessionCore, group: EventGroup): Promise<void> {
  const attempts = group
    .filter(isOutcome)
    .filter((event) => ENDED_BY_US.has(metaOf(event).reason))
    .flatMap(({ toolCallId }) => lastAttempt(core.log, toolCallId) ?? [])
  if (attempts.length === 0) return
  try {
    const patience = AbortSignal.any([core.released, AbortSignal.timeout(PATIENCE_MS)])
    const sandbox = await core.parts.sandbox(core.userId, patience)
    const known = await sandbox.commands()
    for (const { promptId, turn, callId, n, boot } of attempts) {
      const id = commandId({ sessionId: core.id, promptId, turn, callId, attempt: n })
      const runs = known.some((command) => command.id === id && command.state === 'running')
      if (sandbox.bootId !== boot || !runs) continue
      const command = await sandbox.attach(id)
      if (command === undefined) continue
      void Promise.allSettled([command.exit.then(({ bytes }) => command.acknowledge(bytes))])
      await command.cancel(GRACE_MS)
    }
  } catch (error) {
    if (core.released.aborted) return
    const fields = { sessionId: core.id, error: messageOf(error) }
    core.parts.log.warn(fields, 'a command that was stopped may still run in the sandbox')
  }
}

/** The call's start in the log. */
function lastAttempt(log: readonly SessionEvent[], callId: string): Attempt | undefined {
  const begun = log.findLast(
    (event) =>
      event.sessionUpdate === 'tool_call_update' &&
      event.toolCallId === callId &&
      metaOf(event).attempt !== undefined,
  )
  if (begun === undefined) return undefined
  const { promptId, turn, attempt } = metaOf(begun)
  if (promptId === undefined || turn === undefined || attempt === undefined) return undefined
  return { promptId, turn, callId, ...attempt }
}
