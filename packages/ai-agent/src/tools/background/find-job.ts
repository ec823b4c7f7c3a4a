import { ToolError } from '../tool-error.ts'
import type { CallContext } from '../tool.ts'
import { type Job, jobsOf, logPath } from './jobs.ts'

/**
 * The session's background command of this id. @throws ToolError that names those there are, or
 * says that it belongs to another session.
 */
export function findJob(id: string, ctx: CallContext): Job {
  const jobs = jobsOf(ctx.events())
  const job = jobs.find((known) => known.id === id)
  if (job?.elsewhere === true) {
    throw new ToolError(
      'invalid_arguments',
      `The background command ${job.id} (${job.line}) belongs to another chat: the one that this conversation was continued from. It can be read and stopped there only. Its output is in ${logPath(job.command)} of the workspace.`,
    )
  }
  if (job !== undefined) return job
  const ours = jobs.filter(({ elsewhere }) => !elsewhere)
  const known = ours.map((one) => `${one.id} (${one.line})`).join(', ')
  throw new ToolError(
    'invalid_arguments',
    known === ''
      ? 'No command was started in the background in this conversation.'
      : `There is no background command ${JSON.stringify(id)}. There are: ${known}.`,
  )
}
