/**
 * Background commands that have ended since the last turn: said in the log, so that the model and
 * the screen know.
 */
import { type SessionEvent, makeSandlotEvent } from '@sandlot/shared/chat/events'
import type { Sandboxes } from '@sandlot/sandbox/sandboxes'
import { type JobState, endOf, endWords, jobState } from './job-state.ts'
import { type Job, openJobsOf } from './jobs.ts'

/** The state of these commands of a user, as far as it can be known without starting anything. */
export type PollJobs = (
  userId: string,
  jobs: readonly Job[],
) => Promise<readonly { job: Job; state: JobState }[]>

/** Never starts or wakes a stopped sandbox: what ran in it has ended with it. */
export function pollJobs(sandboxes: Pick<Sandboxes, 'status' | 'connected'>): PollJobs {
  return async (userId, jobs) => {
    const sandbox = await sandboxes.connected(userId)
    if (sandbox !== undefined) {
      const states = jobs.map(async (job) => ({ job, state: await jobState(sandbox, job) }))
      return Promise.all(states)
    }
    const { state } = await sandboxes.status(userId)
    const alive = state === 'running' || state === 'paused'
    // It runs, but this process has no stream to it yet: known at a later turn.
    return alive ? [] : jobs.map((job) => ({ job, state: { state: 'gone' } }))
  }
}

/**
 * One event for each background command of the session that has ended. Costs nothing where none
 * runs. Continues after each yield once the event is stored; only then may the sandbox forget the
 * command's end.
 */
export async function* takeEndedJobs(ctx: {
  /** Absent: no prompt runs. */
  promptId?: string
  log: () => readonly SessionEvent[]
  poll: (jobs: readonly Job[]) => ReturnType<PollJobs>
  now: () => number
}): AsyncGenerator<readonly SessionEvent[], void> {
  const open = openJobsOf(ctx.log())
  if (open.length === 0) return
  for (const { job, state } of await ctx.poll(open)) {
    if (state.state === 'running') continue
    const text = `[The background command ${job.id} (${job.line}) ${endWords(state)}. read_output (id ${job.id}) shows what it printed.]`
    const event = {
      type: 'background_ended',
      toolCallId: job.callId,
      ...(job.endKnown ? {} : { text }),
      ...endOf(state),
    } as const
    const fields = ctx.promptId === undefined ? {} : { promptId: ctx.promptId }
    yield [makeSandlotEvent(event, fields, ctx.now())]
    if (state.state === 'ended') state.forget()
  }
}
