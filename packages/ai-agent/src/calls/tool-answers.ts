/**
 * Checks a tool's answer where it leaves the tool. A value that the log cannot hold would take the
 * other calls of its turn with it or, once stored, make the session unreadable.
 */
import { sessionEvent, type SessionEvent } from '@sandlot/shared/chat/events'
import { messageOf } from '@sandlot/shared/base/errors'
import { failureReason } from '@sandlot/shared/chat/reasons'
import { storableJson, storableText } from '@sandlot/shared/base/storable-text'
import type { z } from 'zod'
import type { ToolCallContent } from '@sandlot/shared/chat/call'
import { deeperThan } from '../model/json.ts'
import { ToolError } from '../tools/tool-error.ts'
import type { ToolOutcome, ToolUpdate } from '../tools/tool.ts'
import { outcomeEvent, updateEvent } from './events.ts'
import { truncateToolOutput, type ResultLimits, withOwnWords } from '../tools/output/truncate-output.ts'

/** Levels of what is said. Everything that walks through it may do so by calling itself. */
const MAX_DEPTH = 100
const ANY_CALL = { callId: 'c', promptId: 'p', turn: 1 }

/** The update as JSON has it. Throws `ToolError` with `invalid_output`. */
export function sanitizeUpdate(said: ToolUpdate): ToolUpdate {
  const update = asJson(objectOf(said))
  check(() => updateEvent(update, ANY_CALL, 0))
  return update
}

/**
 * The outcome as JSON has it; a completed one has the `data` that its tool declares. Throws
 * `ToolError` with `invalid_output`.
 */
export function validateOutcome(said: ToolOutcome, output?: z.ZodType): ToolOutcome {
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

/*
 * Text in the log is safe for every model and every store: well-formed, no NUL, never empty, never
 * too long.
 */

/** Cleans what the model and the screen get. Cuts `forModel` only if its tool did not. */
export function cleanOutcome(outcome: ToolOutcome, results: ResultLimits): ToolOutcome {
  const text = storableText(outcome.forModel)
  const said = text.trim() === '' ? emptyText(outcome) : text
  return {
    ...outcome,
    forModel: truncateToolOutput(said, withOwnWords(results)).text,
    content: outcome.content?.map(cleanContent),
    data: storableJson(outcome.data),
  }
}

/**
 * Cuts what the model gets to `limit` characters, because the calls of its turn have too much
 * together.
 */
export function shortenOutcome(outcome: ToolOutcome, limit: number): ToolOutcome {
  if (outcome.forModel.length <= limit) return outcome
  const { text } = truncateToolOutput(outcome.forModel, { maxChars: limit, ...keepsFile(outcome) })
  const info = outcome.outputInfo
  return {
    ...outcome,
    forModel: text,
    outputInfo: info === undefined ? undefined : { ...info, truncated: true },
  }
}

function keepsFile(outcome: ToolOutcome): { file?: string } {
  const file = outcome.outputInfo?.file
  return file === undefined ? {} : { file }
}

function emptyText(outcome: ToolOutcome): string {
  return outcome.status === 'completed'
    ? 'The call succeeded and returned nothing.'
    : `The call failed (${outcome.reason}).`
}

function cleanContent(content: ToolCallContent): ToolCallContent {
  if (content.type === 'diff') {
    const { path, oldText, newText } = content
    return {
      type: 'diff',
      path,
      oldText: typeof oldText === 'string' ? storableText(oldText) : oldText,
      newText: storableText(newText),
    }
  }
  const block = content.content
  return block.type === 'text'
    ? { ...content, content: { ...block, text: storableText(block.text) } }
    : content
}
