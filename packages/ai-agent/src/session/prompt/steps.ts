/**
 * Steps at the start and at the end of every prompt, in their order. A capability that prepares
 * something or reports something is an element here, and no `await` in the runner.
 */
import {
  type EventGroup,
  type SessionEvent,
  makeSandlotEvent,
  sandlotEventOf,
} from '@sandlot/shared/chat/events'
import { type PromptDiffs, diffsId } from '@sandlot/shared/chat/file-changes'
import { takeInstructions } from '../../config/instructions.ts'
import { leftOutNote } from '../../config/tool-offer.ts'
import { branchOf } from '../../history/branch.ts'
import type { ToolRegistry } from '../../tools/registry.ts'
import { inFolder } from '../../tools/workspace-path.ts'
import { PromptChanges } from '../../workspace/prompt-changes.ts'
import { nameChat } from '../title.ts'
import type { PromptRun, RunTools } from './run.ts'

interface StartStep {
  /** Prepares the run. May store events; the loop begins when all have resolved. */
  start: (run: PromptRun) => Promise<void> | void
}

interface EndStep {
  /** The group to store in place of this one, which contains the prompt's end. */
  before?: (run: PromptRun, group: EventGroup) => Promise<EventGroup>
  /** Called when the end is stored. `isLast`: no other prompt follows. */
  after?: (run: PromptRun, isLast: boolean, end: SessionEvent) => void
}

/** The slot in which the prompt waits for its turn. */
const turn: StartStep = {
  start(run) {
    const { promptId: id, person, signal } = run
    run.slot = run.core.parts.promptQueue.of({ id, person }, signal)
  },
}

const budgets: StartStep = {
  start(run) {
    run.limits = run.core.parts.users.limitsOf(run.person)
  },
}

const instructions: StartStep = {
  start: ({ core, promptId, resumed }) =>
    takeInstructions({
      promptId,
      resumed,
      log: branchOf(core.log),
      ask: () => core.parts.users.instructions(core.userId, core.id),
      store: (events) => core.inTurn(() => core.store(events)),
      now: core.parts.now,
    }),
}

/** The user's tools, as a chat with this folder has them. */
const tools: StartStep = {
  async start(run) {
    const { core, folder, signal } = run
    const registry = await core.parts.calls.tools(core.userId, signal, core.id)
    run.tools = folder === undefined ? registry : toolsIn(folder, registry)
    const note = leftOutNote(core.log, registry, run.promptId, core.parts.now())
    if (note !== undefined && !core.released.aborted) await core.inTurn(() => core.store([note]))
  },
}

const changes: StartStep & EndStep = {
  start(run) {
    // The state when an earlier process began the prompt is unknown.
    if (!run.resumed) run.changes = new PromptChanges(run.promptId, run.core.parts.log)
  },
  before: withChanges,
}

/** Writes what the prompt used to the log, unless another end than the measured one was stored. */
const usage: EndStep = {
  after({ core, promptId, measured }, _isLast, end) {
    const stored = sandlotEventOf(end)
    if (stored?.type !== 'prompt_ended' || stored.reason !== measured?.ended?.reason) return
    core.parts.log.info(
      { event: 'prompt_ended', sessionId: core.id, promptId, ...measured.ended },
      'a prompt ended',
    )
  },
}

const title: EndStep = {
  after: ({ core, running, spent }) => core.runInBackground(nameChat(core, running, spent)),
}

/** Those who wait for the end. */
const notices: EndStep = { after: ({ listeners }) => listeners.notifyWaiters() }

/** The session's line in the list; a prompt that follows has published it already. */
const index: EndStep = {
  after({ core }, isLast) {
    if (isLast) core.publishSummary()
  },
}

/** A prompt polls background commands itself. */
const jobs: EndStep = {
  after({ listeners }, isLast) {
    if (isLast) listeners.pollJobs()
  },
}

// Tools before instructions: they may connect the sandbox in which the instructions are.
export const onStart: readonly StartStep[] = [turn, budgets, tools, instructions, changes]
export const onEnd: readonly EndStep[] = [changes, usage, title, notices, index, jobs]

export function promptEndIn(group: EventGroup): SessionEvent | undefined {
  return group.find((event) => sandlotEventOf(event)?.type === 'prompt_ended')
}

function toolsIn(folder: string, registry: ToolRegistry): RunTools {
  return {
    getTool(name) {
      const tool = registry.getTool(name)
      return tool && inFolder(tool, folder)
    },
    listTools: () => registry.listTools().map((tool) => inFolder(tool, folder)),
    modelTools: () => registry.modelTools(),
  }
}

/** Before the prompt's end, what it changed in the workspace; the diffs are stored first. */
async function withChanges(run: PromptRun, group: EventGroup): Promise<EventGroup> {
  const { core, promptId } = run
  const end = promptEndIn(group)
  const settled = await run.changes?.settle(core.log)
  if (settled === undefined || end === undefined || core.released.aborted) return group
  const { changed, diffs } = settled
  const stored = Buffer.from(JSON.stringify({ diffs } satisfies PromptDiffs))
  const storeFailed =
    diffs.length > 0 &&
    (await core.asOwner(core.journal.appendOutput(diffsId(promptId), 0, stored))) !== undefined
  const files = storeFailed ? changed.files.map((file) => ({ ...file, diff: undefined })) : changed.files
  const event = makeSandlotEvent({ type: 'files_changed', ...changed, files }, { promptId }, core.parts.now())
  return group.flatMap((one) => (one === end ? [event, one] : [one]))
}
