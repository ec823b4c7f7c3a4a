import { CallFailure } from '../call-failure.ts'
import type { CallContext } from '../tool.ts'
import { type Job, jobsOf } from './jobs.ts'

/** The session's background command of this id. @throws CallFailure that names those there are. */
export function findJob(id: string, ctx: CallContext): Job {
  const jobs = jobsOf(ctx.events())
  const job = jobs.find((known) => known.id === id)
  if (job !== undefined) return job
  const known = jobs.map((one) => `${one.id} (${one.line})`).join(', ')
  throw new CallFailure(
    'invalid_arguments',
    known === ''
      ? 'No command was started in the background in this conversation.'
      : `There is no background command ${JSON.stringify(id)}. There are: ${known}.`,
  )
}
