/**
 * A tool result as the outcome of a call: text for the model, images for model and screen, links
 * for the screen.
 */
import stripAnsi from 'strip-ansi'
import type { ContentBlock, ToolCallContent } from '@sandlot/shared/chat/call'
import type { FailureReason } from '@sandlot/shared/chat/reasons'
import { stringifyExactly } from '@sandlot/shared/base/exact-numbers'
import { z } from 'zod'
import { isObject } from '../model/json.ts'
import { type CheckedImage, outcomeImages } from '../tools/image-content.ts'
import { ToolError } from '../tools/tool-error.ts'
import type { ToolOutcome } from '../tools/tool.ts'
import { type Block, leftOutText, type ReadResult } from './read-result.ts'
import type { SchemaCheck } from './schema-check.ts'
import { visibleText } from './visible-text.ts'

/** Characters of JSON of structured content for the screen. */
const MAX_DATA_CHARS = 64 * 1024

interface ResultOf {
  server: string
  tool: string
  /** It may have changed something: whatever is wrong with its answer, the call is done. */
  changes: boolean
  /** Checks structured content, as `SlowServers.check`. Absent: the tool promises none. */
  check: ((structured: unknown) => Promise<SchemaCheck>) | undefined
}

/** The text is complete; the policies store it and cut it for the model, as for every tool. */
export async function outcomeOf(result: ReadResult, of: ResultOf): Promise<ToolOutcome> {
  const { blocks, structured, leftOut } = result
  const wrong = result.isError ? undefined : await problemOfOutput(result, of)
  const check = outcomeImages()
  const images = blocks.map((one) => imageOf(one, check))
  const said = blocks.map((one, place) => textOf(one, images[place])).join('\n')
  const usual = said === '' || of.check !== undefined || isObject(structured) || structured === undefined
  const lost = usual ? leftOut : [...leftOut, 'structured content that is no object']
  const notes = [said === '' ? (stringifyExactly(structured, 2) ?? '') : said, leftOutText(lost)]
  const text = stripAnsi(notes.filter((note) => note !== '').join('\n'))
  const content = blocks.flatMap((one, place) => shownOf(one, images[place]))
  const outcome = {
    forModel: wrong === undefined ? text : `${wrong.says}\n${text}`,
    ...(content.length === 0 ? {} : { content }),
    data: dataOf(structured, of),
  }
  const reason = result.isError ? reasonOf(result) : wrong?.reason
  return reason === undefined ? { ...outcome, status: 'completed' } : { ...outcome, status: 'failed', reason }
}

/** Sandlot's own servers name the kind of failure in `_meta`; for others it is `tool_error`. */
const REASON_OF_CODE: Record<string, FailureReason> = {
  invalid_arguments: 'invalid_arguments',
  needs_auth: 'needs_auth',
  rate_limited: 'rate_limited',
  timeout: 'timeout',
  unavailable: 'unavailable',
  bad_answer: 'invalid_output',
}
const failureMeta = z.object({ 'sandlot/failure': z.object({ code: z.string() }) })

function reasonOf({ meta }: ReadResult): FailureReason {
  const code = failureMeta.safeParse(meta).data?.['sandlot/failure'].code ?? ''
  return (Object.hasOwn(REASON_OF_CODE, code) ? REASON_OF_CODE[code] : undefined) ?? 'tool_error'
}

/** `reason`: absent where the call has done its work, so that its answer is all that is wrong. */
interface OutputProblem {
  says: string
  reason?: FailureReason
}

async function problemOfOutput(
  { structured }: ReadResult,
  { tool, changes, check }: ResultOf,
): Promise<OutputProblem | undefined> {
  if (check === undefined) return undefined
  const reason = changes ? undefined : 'invalid_output'
  const unreliable = changes
    ? 'The call has run, but what it returned cannot be relied on'
    : 'So its result cannot be relied on'
  if (structured === undefined)
    return { says: `${tool} promises structured content and returned none. ${unreliable}:`, reason }
  try {
    const checked = await check(structured)
    // A schema that is broken, or in an unknown dialect, is not the result's fault.
    if (checked.fits !== 'no') return undefined
    const problems = checked.problems.slice(0, 5).join('; ')
    return { says: `${tool} did not return what its schema promises (${problems}). ${unreliable}:`, reason }
  } catch (error) {
    if (!(error instanceof ToolError)) throw error
    return {
      says: `${tool} has run; do not call it again for this. ${error.message} It returned:`,
      reason: error.reason,
    }
  }
}

/** The image of a block: the block itself, or a file in it. */
function imageOf(one: Block, check: ReturnType<typeof outcomeImages>): CheckedImage | undefined {
  if (one.type === 'image') return check(one.data, oneLine(one.mimeType))
  if (one.type !== 'resource' || one.resource.text !== undefined) return undefined
  const { blob, mimeType } = one.resource
  return blob !== undefined && mimeType?.startsWith('image/') === true
    ? check(blob, oneLine(mimeType))
    : undefined
}

// ── Text for the model ───────────────────────────────────────────────────────────────────────────

function textOf(one: Block, image: CheckedImage | undefined): string {
  if (image !== undefined) {
    const what = one.type === 'resource' ? `${placeOf(one.resource)}: an image` : 'An image'
    return image.fits ? `[${what}, ${image.words}.]` : `[${what} was left out, ${image.words}.]`
  }
  switch (one.type) {
    case 'text':
      return one.text
    case 'image':
    case 'audio':
      return `[${one.type === 'image' ? 'An image' : 'A recording'}, ${oneLine(one.mimeType)}, ${sizeOf(one.data)}.]`
    case 'resource_link':
      return `[Link: ${oneLine(one.name)} <${oneLine(one.uri)}>${one.mimeType === undefined ? '' : ` ${oneLine(one.mimeType)}`}]`
    case 'resource': {
      const { text, blob = '', mimeType = 'of unknown type' } = one.resource
      if (text !== undefined) return `[${placeOf(one.resource)}]\n${text}`
      return `[${placeOf(one.resource)}: a file, ${oneLine(mimeType)}, ${sizeOf(blob)}.]`
    }
  }
}

function placeOf({ uri }: { uri: string }): string {
  return uri === '' ? 'A file without a name' : oneLine(uri)
}

function oneLine(text: string): string {
  return visibleText(text.slice(0, 500)).replaceAll(/\s+/g, ' ')
}

function sizeOf(base64: string): string {
  return `${Math.floor((base64.length * 3) / 4)} bytes`
}

// ── The screen, and images for the model ─────────────────────────────────────────────────────────

function shownOf(one: Block, image: CheckedImage | undefined): ToolCallContent[] {
  const shown = (content: ContentBlock): ToolCallContent[] => [{ type: 'content', content }]
  if (image?.fits === true) return shown({ type: 'image', ...image.image })
  if (one.type !== 'resource_link' || !/^https?:/i.test(one.uri)) return []
  const { uri, name, mimeType } = one
  return shown({ type: 'resource_link', uri, name: name === '' ? uri : name, mimeType })
}

function dataOf(structured: unknown, { server, tool }: ResultOf): Record<string, unknown> {
  if (structured === undefined || JSON.stringify(structured).length > MAX_DATA_CHARS) return { server, tool }
  return { server, tool, structured }
}
