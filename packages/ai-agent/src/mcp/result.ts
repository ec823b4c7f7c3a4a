/**
 * A tool result as the outcome of a call: text for the model, images for model and screen, links
 * for the screen.
 */
import stripAnsi from 'strip-ansi'
import type { ContentBlock, ToolCallContent } from '@sandlot/shared/call'
import type { FailureReason } from '@sandlot/shared/reasons'
import { stringifyExactly, withNearest } from '@sandlot/shared/exact-numbers'
import { z } from 'zod'
import { type CheckedImage, outcomeImages } from '../tools/image-content.ts'
import type { ToolOutcome } from '../tools/tool.ts'
import { checkSchema } from './schema-check.ts'
import { visibleText } from './visible-text.ts'

/** Validated leniently: an unknown block becomes a sentence, and the others stay. */
export const callResult = z.looseObject({
  content: z.array(z.unknown()).catch([]).default([]),
  structuredContent: z.unknown().optional(),
  isError: z.boolean().catch(false).default(false),
})
export type CallResult = z.output<typeof callResult>

const resourceContents = z.object({
  uri: z.string(),
  mimeType: z.string().optional().catch(undefined),
  text: z.string().optional().catch(undefined),
  blob: z.string().optional().catch(undefined),
})
const block = z.discriminatedUnion('type', [
  z.object({ type: z.literal('text'), text: z.string() }),
  z.object({ type: z.enum(['image', 'audio']), data: z.string(), mimeType: z.string() }),
  z.object({
    type: z.literal('resource_link'),
    uri: z.string(),
    name: z.string().catch(''),
    mimeType: z.string().optional().catch(undefined),
    size: z.number().optional().catch(undefined),
  }),
  z.object({ type: z.literal('resource'), resource: resourceContents }),
])
type Block = z.output<typeof block>

/** Characters of JSON of structured content for the screen. */
const MAX_DATA_CHARS = 64 * 1024

interface ResultOf {
  server: string
  tool: string
  outputSchema: Record<string, unknown> | undefined
}

/** The text is complete; the policies store it and cut it for the model, as for every tool. */
export function outcomeOf(result: CallResult, of: ResultOf): ToolOutcome {
  const wrong = result.isError ? undefined : problemOfOutput(result, of)
  const blocks = result.content.map((one) => block.safeParse(one).data)
  const check = outcomeImages()
  const images = blocks.map((one) => imageOf(one, check))
  const said = blocks.map((one, place) => textOf(one, images[place])).join('\n')
  const text = stripAnsi(said === '' ? jsonOf(result.structuredContent) : said)
  const content = blocks.flatMap((one, place) => shownOf(one, images[place]))
  const outcome = {
    forModel: wrong === undefined ? text : `${wrong}\n${text}`,
    ...(content.length === 0 ? {} : { content }),
    data: dataOf(result.structuredContent, of),
  }
  if (result.isError) return { ...outcome, status: 'failed', reason: reasonOf(result) }
  if (wrong !== undefined) return { ...outcome, status: 'failed', reason: 'invalid_output' }
  return { ...outcome, status: 'completed' }
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

function reasonOf(result: CallResult): FailureReason {
  const code = failureMeta.safeParse(result['_meta']).data?.['sandlot/failure'].code ?? ''
  return (Object.hasOwn(REASON_OF_CODE, code) ? REASON_OF_CODE[code] : undefined) ?? 'tool_error'
}

function problemOfOutput({ structuredContent }: CallResult, of: ResultOf): string | undefined {
  if (of.outputSchema === undefined) return undefined
  if (structuredContent === undefined)
    return `${of.tool} promises structured content and returned none, so its result cannot be relied on:`
  const check = checkSchema(of.outputSchema, withNearest(structuredContent))
  if (check.fits === 'no')
    return `${of.tool} did not return what its schema promises, so its result cannot be relied on: ${check.problems.slice(0, 5).join('; ')}`
  // A schema in an unknown dialect is not the result's fault; one that times out has checked
  // nothing.
  if (check.fits === 'unknown' && check.timedOut)
    return `What ${of.tool} returned could not be checked against its schema in time, so it cannot be relied on:`
  return undefined
}

/** The image of a block: the block itself, or a file in it. */
function imageOf(one: Block | undefined, check: ReturnType<typeof outcomeImages>): CheckedImage | undefined {
  if (one?.type === 'image') return check(one.data, oneLine(one.mimeType))
  if (one?.type !== 'resource' || one.resource.text !== undefined) return undefined
  const { blob, mimeType } = one.resource
  return blob !== undefined && mimeType?.startsWith('image/') === true
    ? check(blob, oneLine(mimeType))
    : undefined
}

// ── Text for the model ───────────────────────────────────────────────────────────────────────────

function textOf(one: Block | undefined, image: CheckedImage | undefined): string {
  if (one === undefined) return '[Something of a kind that is not known here was left out.]'
  if (image !== undefined) {
    const what = one.type === 'resource' ? `${oneLine(one.resource.uri)}: an image` : 'An image'
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
      const { uri, text, blob = '', mimeType = 'of unknown type' } = one.resource
      if (text !== undefined) return `[${oneLine(uri)}]\n${text}`
      return `[${oneLine(uri)}: a file, ${oneLine(mimeType)}, ${sizeOf(blob)}.]`
    }
  }
}

function oneLine(text: string): string {
  return visibleText(text.slice(0, 500)).replaceAll(/\s+/g, ' ')
}

function sizeOf(base64: string): string {
  return `${Math.floor((base64.length * 3) / 4)} bytes`
}

function jsonOf(value: unknown): string {
  return stringifyExactly(value, 2) ?? ''
}

// ── The screen, and images for the model ─────────────────────────────────────────────────────────

function shownOf(one: Block | undefined, image: CheckedImage | undefined): ToolCallContent[] {
  if (image?.fits === true) return [shown({ type: 'image', ...image.image })]
  if (one?.type !== 'resource_link' || !/^https?:/i.test(one.uri)) return []
  const { uri, name, mimeType } = one
  return [
    shown({
      type: 'resource_link',
      uri,
      name: name === '' ? uri : name,
      mimeType,
    }),
  ]
}

function shown(content: ContentBlock): ToolCallContent {
  return { type: 'content', content }
}

function dataOf(structured: unknown, { server, tool }: ResultOf): Record<string, unknown> {
  if (structured === undefined || JSON.stringify(structured).length > MAX_DATA_CHARS) return { server, tool }
  return { server, tool, structured }
}
