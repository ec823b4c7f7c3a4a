/**
 * Commands that go on after their call: a fold of the session's log, so that a restart knows them
 * too.
 */
import { type OutcomeEvent, type SessionEvent, isOutcome, sandlotEventOf } from '@sandlot/shared/chat/events'
import { z } from 'zod'

/** `data.background` of an outcome: what started, was read or was stopped. */
const backgroundData = z.object({
  background: z.object({
    id: z.string(),
    /** Only where it was started: the command in the sandbox, and the boot that runs it. */
    command: z
      .string()
      .regex(/^[0-9a-f]{32}$/)
      .optional(),
    boot: z.string().optional(),
    line: z.string().optional(),
    /** It was started in the session from which this one was forked. */
    elsewhere: z.literal(true).optional(),
    /** The byte of its log to read on from. */
    next: z.number().optional(),
    /** The model knows by this result that it has ended. */
    ended: z.literal(true).optional(),
  }),
})

const { background } = backgroundData.shape
/** `data` of a call that started one. */
export const startedData = z.strictObject({
  background: background.pick({ id: true, command: true, boot: true, line: true }).required().strict(),
})
/** `data` of a call that polled one, or ended it. */
export const seenData = z.strictObject({
  background: background.pick({ id: true, next: true, ended: true }).strict(),
})

/** One background command of a session. */
export interface Job {
  /** The id for the model: bg1, bg2 … */
  id: string
  /** The call that started it. */
  callId: string
  /** Its command id in the sandbox. */
  command: string
  boot: string
  /** The first line of the command, for people. */
  line: string
  /** The byte of its log from which the model has not read. */
  next: number
  /** The model knows that it has ended. */
  endKnown: boolean
  /** The log says that it has ended. */
  over: boolean
  /**
   * It belongs to the session from which this one was forked: not looked at, read or ended here.
   */
  elsewhere: boolean
}

/** Every background command that the log knows, in the order of their start. */
export function jobsOf(events: readonly SessionEvent[]): Job[] {
  const jobs = new Map<string, Job>()
  for (const event of events) {
    const happened = sandlotEventOf(event)
    if (happened?.type === 'background_ended') {
      for (const job of jobs.values()) if (job.callId === happened.toolCallId) job.over = true
      continue
    }
    if (!isOutcome(event)) continue
    const data = event.rawOutput?.data
    // In a long log most are about none: not worth a parse.
    if (typeof data !== 'object' || data === null || !('background' in data)) continue
    const read = backgroundData.safeParse(data)
    if (!read.success) continue
    const { id, command, boot, line = '', next, ended, elsewhere } = read.data.background
    if (command !== undefined && boot !== undefined) {
      const started = { id, callId: event.toolCallId, command, boot, line }
      jobs.set(id, { ...started, next: 0, endKnown: false, over: false, elsewhere: elsewhere === true })
    }
    const job = jobs.get(id)
    if (job === undefined) continue
    job.next = next ?? job.next
    job.endKnown ||= ended === true
  }
  return [...jobs.values()]
}

/** True if the call left a command running in the background. */
export function startsJob(outcome: OutcomeEvent): boolean {
  return startedData.safeParse(outcome.rawOutput?.data).success
}

/** Those of the session itself that the log does not say have ended. */
export function openJobsOf(events: readonly SessionEvent[]): Job[] {
  return jobsOf(events).filter(({ over, elsewhere }) => !over && !elsewhere)
}

/** The outcome as a fork has it: what it started belongs to the session where it was started. */
export function leftElsewhere(outcome: OutcomeEvent): OutcomeEvent {
  const read = backgroundData.safeParse(outcome.rawOutput?.data)
  if (outcome.rawOutput === undefined || read.data?.background.command === undefined) return outcome
  const data = { ...read.data, background: { ...read.data.background, elsewhere: true } }
  return { ...outcome, rawOutput: { ...outcome.rawOutput, data } }
}

/** The id of the next one. */
export function nextJobId(events: readonly SessionEvent[]): string {
  return `bg${jobsOf(events).length + 1}`
}

/** The path of its output, relative to the workspace. */
export function logPath(command: string): string {
  return `.tool-outputs/${command}.txt`
}
