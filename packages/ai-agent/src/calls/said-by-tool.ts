/**
 * What a tool says, looked at where it leaves the tool. Something that the log cannot hold would
 * otherwise take the other calls of its turn with it or, once stored, make the whole session
 * unreadable.
 */
import { type SessionEvent, sessionEvent } from '@sandlot/shared/events'
import { messageOf } from '@sandlot/shared/errors'
import { failureReason } from '@sandlot/shared/reasons'
import type { z } from 'zod'
import { deeperThan } from '../model/json.ts'
import { ToolError } from '../tools/tool-error.ts'
import type { ToolOutcome, ToolUpdate } from '../tools/tool.ts'
import { outcomeEvent, updateEvent } from './call-events.ts'

/** Levels of what is said. Everything that walks through it may do so by calling itself. */
const MAX_DEPTH = 100
const ANY_CALL = { callId: 'c', promptId: 'p', turn: 1 }

/** The update as JSON has it. Throws `ToolError` with `invalid_output`. */
export function updateSaid(said: ToolUpdate): ToolUpdate {
  const update = asJson(objectOf(said))
  check(() => updateEvent(update, ANY_CALL, 0))
  return update
}

/**
 * The outcome as JSON has it; a completed one has the `data` that its tool declares. Throws
 * `ToolError` with `invalid_output`.
 */
export function outcomeSaid(said: ToolOutcome, output?: z.ZodType): ToolOutcome {
  // Its text may be very long, and is a text or nothing.
  const { forModel, ...rest } = objectOf(said)
  const outcome = { ...asJson(rest), forModel }
  check(() => outcomeEvent(outcome, ANY_CALL, 0))
  if (outcome.status === 'completed') {
    const [first] = output?.safeParse(outcome.data).error?.issues ?? []
    if (first !== undefined) throw invalid(`${['data', ...first.path].join('.')}: ${first.message}`)
    return outcome
  }
  if (outcome.status === 'failed' && failureReason.safeParse(outcome.reason).success) return outcome
  throw invalid('it says neither that the call succeeded nor why it failed')
}

function objectOf<Said>(said: Said): Said {
  if (typeof said === 'object' && said !== null) return said
  throw invalid(`it is ${said === undefined || said === null ? 'nothing' : `a ${typeof said}`}`)
}

/**
 * By its types it is right; what a tool is written in, or gets from elsewhere, need not keep to
 * them.
 */
function check(make: () => SessionEvent): void {
  const [first] = sessionEvent.safeParse(make()).error?.issues ?? []
  if (first !== undefined) throw invalid(`${first.path.join('.')}: ${first.message}`)
}

function asJson<Said>(said: Said): Said {
  let copy: Said
  try {
    copy = JSON.parse(JSON.stringify(said)) as Said
  } catch (error) {
    throw invalid(`it is not JSON: ${messageOf(error)}`)
  }
  if (deeperThan(copy, MAX_DEPTH)) throw invalid(`it is nested more than ${MAX_DEPTH} deep`)
  return copy
}

function invalid(why: string): ToolError {
  return new ToolError(
    'invalid_output',
    `The tool said something that Sandlot cannot use (${why.slice(0, 300)}). The call may have had its effect all the same.`,
  )
}
