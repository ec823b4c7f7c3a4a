/** Resume what an earlier process left running, drain, interrupt, shut down. */
import { type EndingStep, endingStep } from '../session/ending-step.ts'
import type { AgentConfig } from '../config/config.ts'
import type { Log } from '../log.ts'
import { SHUTDOWN } from '../tools/tool-error.ts'
import { writeLastEnd } from './last-end-file.ts'
import type { Running } from './running.ts'

/** Milliseconds that a shutdown waits for prompts to end, or to be released. */
const END_MS = 20_000
/** Milliseconds that a shutdown waits until others have its people. */
const DRAIN_MS = 28_000

export interface AgentLifecycle {
  /** Resume what an earlier process left running. Returns how many prompts. */
  resume(): Promise<number>
  /** Hand everybody over to the other agents of this database. On SQLite nothing happens. */
  drain(): Promise<void>
  /**
   * `interrupt`, for prompts that an earlier process left running: no further step of them is run.
   * Returns the number of prompts.
   */
  endUnfinished(): Promise<number>
  /** End all prompts with reason `interrupted` and stop all sandboxes; then `leave`. */
  interrupt(): Promise<void>
  /** Release all prompts: commands go on, and the next start resumes them. */
  leave(): Promise<void>
}

export function lifecycleOf(config: AgentConfig, log: Log, running: Running): AgentLifecycle {
  const { stores, manager, retention, promptQueue, mcp, sandboxes, metrics, leaving } = running
  const { store, replica, people, personal, audit } = stores
  const end = (step: EndingStep): Promise<void> => endingStep(step, log)
  const leave = async (): Promise<void> => {
    await end({
      work: async () => replica?.drain(),
      problem: 'not all people were handed over',
      withinMs: DRAIN_MS,
    })
    leaving.abort(SHUTDOWN)
    await end({ work: () => retention.stop(), problem: 'retention did not end', withinMs: END_MS })
    await end({ work: () => manager.leave(), problem: 'prompts did not let go', withinMs: END_MS })
    await end({ work: () => mcp.close(), problem: 'MCP servers did not end', withinMs: END_MS })
    await end({ work: () => sandboxes.close(), problem: 'the sandboxes could not be let go' })
    await end({
      work: () => promptQueue.settled(),
      problem: 'the order of queued prompts was not stored; a restart loses it',
    })
    await end({ work: async () => metrics.tracing?.close(), problem: 'the last spans were not sent' })
    await end({ work: () => people.settled(), problem: 'an address was not stored' })
    await end({ work: () => personal.settled(), problem: 'settings were not stored' })
    await end({ work: () => audit.flush(), problem: 'the audit log was not written to its end' })
    await end({ work: async () => replica?.close(), problem: 'this replica is still known' })
    await end({ work: () => store.close(), problem: 'the store could not be closed' })
    const record = async (): Promise<void> => writeLastEnd(config.ownFolder, { how: 'left' })
    await end({ work: record, problem: 'the end in order could not be recorded' })
  }
  const interrupt = async (): Promise<void> => {
    await end({ work: () => manager.interruptAll(), problem: 'prompts did not end', withinMs: END_MS })
    await end({ work: () => sandboxes.stopAll(), problem: 'the sandboxes could not be stopped' })
    await leave()
  }
  return {
    resume: () => resumePrompts(running),
    drain: async () => replica?.drain(),
    async endUnfinished() {
      await replica?.begin({ resume: () => Promise.resolve(0), release: () => Promise.resolve() })
      const ended = await manager.endUnfinished()
      await interrupt()
      return ended
    },
    interrupt,
    leave,
  }
}

/** Starts the schedules and resumes unfinished prompts. Returns their number. */
async function resumePrompts({ stores, manager, retention, promptQueue }: Running): Promise<number> {
  const { store, replica } = stores
  retention.start()
  if (replica !== undefined)
    return replica.begin({
      resume: (userIds) => manager.resumeOf(userIds),
      release: (userId) => manager.releaseOf(userId),
    })
  const unfinished = (await store.sessions.unfinished()).filter(({ waiting }) => waiting === 0)
  await promptQueue.restore(
    unfinished.map(({ runningPromptId, userId }) => ({
      promptId: runningPromptId ?? '',
      person: userId,
    })),
  )
  const resumed = await manager.resumeUnfinished()
  const run = new Set((await manager.runningPrompts('')).map(({ promptId }) => promptId))
  promptQueue.keepOnly((promptId) => run.has(promptId))
  return resumed
}
