import { z } from 'zod'
import { JOB_ALIASES, withAliases } from '../argument-aliases.ts'
import { findJob } from '../background/find-job.ts'
import { endWords, jobState } from '../background/job-state.ts'
import { seenData } from '../background/jobs.ts'
import { defineTool, textArg } from '../tool.ts'
import { orAborted } from '@sandlot/shared/async/or-aborted'
import { acquireSandbox } from '../sandbox-command/sandboxed-tool-executor.ts'
import { stoppedWords } from '../sandbox-reasons.ts'

const input = z.strictObject({
  id: z.string().min(1).max(64).describe('The id of the background command, for example bg1.'),
})

/** From TERM to KILL. */
const GRACE_MS = 2000

export const stop = defineTool({
  name: 'stop',
  description: 'Ends a background command of this conversation and everything that it has started.',
  kind: 'execute',
  input: withAliases(input, JOB_ALIASES),
  output: seenData,
  readOnly: false,
  // It can only end what this conversation was allowed to start, and twice is as good as once.
  runs: { needsApproval: false, repeatable: true, timeoutMs: 10_000 },
  title: (args) => `Stop ${textArg(args, 'id') ?? 'a background command'}`,
  async *execute(args, ctx) {
    const job = findJob(args.id, ctx)
    const sandbox = yield* acquireSandbox(ctx)
    const before = await jobState(sandbox, job)
    const data = { background: { id: job.id, ended: true as const } }
    if (before.state !== 'running') {
      return { status: 'completed', forModel: `${job.id} (${job.line}) ${endWords(before)} already.`, data }
    }
    const command = await sandbox.attach(job.command)
    if (command === undefined)
      return {
        status: 'completed',
        forModel: `${job.id} (${job.line}) ${endWords({ state: 'gone' })}.`,
        data,
      }
    void Promise.allSettled([command.exit])
    yield { type: 'started' }
    await command.cancel(GRACE_MS)
    const exit = await orAborted(command.exit, ctx.signal)
    // It may have ended by itself in between.
    const forModel =
      exit.cause === 'cancel'
        ? `Stopped ${job.id} (${job.line}) and everything it had started${stoppedWords(exit)}.`
        : `${job.id} (${job.line}) ${endWords({ state: 'ended', exit })} before it was stopped.`
    return { status: 'completed', forModel, data }
  },
})
