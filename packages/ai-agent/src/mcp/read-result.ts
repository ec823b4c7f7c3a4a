/**
 * Reads the result of a tool as servers really send it. A part that cannot be used is left out and
 * named; the others stay, whatever is wrong with it: the call has run.
 */
import { isExactNumber, stringifyExactly } from '@sandlot/shared/base/exact-numbers'
import { z } from 'zod'
import { deeperThan, isObject, member } from '../model/json.ts'

/** Levels of structured content that a log and a screen take. */
const MAX_DEPTH = 64
/** Reading each costs everybody time. */
const MAX_BLOCKS = 10_000
/** Different kinds of what was left out that are named. */
const SHOWN_KINDS = 5
const KIND_CHARS = 40

export interface ReadResult {
  blocks: readonly Block[]
  /** Any JSON; undefined: none. */
  structured: unknown
  isError: boolean
  meta: unknown
  /** Omitted parts; see `leftOutText`. */
  leftOut: readonly string[]
}

const text = z.string()
/** Absent where it is no text. */
const optional = z.string().optional().catch(undefined)
const resourceContents = z.object({
  uri: text.catch(''),
  mimeType: optional,
  text: optional,
  blob: optional,
})
const block = z.discriminatedUnion('type', [
  z.object({ type: z.literal('text'), text }),
  z.object({
    type: z.enum(['image', 'audio']),
    // Some send the whole address.
    data: text.transform((data) => data.replace(/^data:[^,]{0,200},/, '')),
    mimeType: text.catch('of unknown type'),
  }),
  z.object({
    type: z.literal('resource_link'),
    uri: text,
    name: text.catch(''),
    mimeType: optional,
  }),
  z.object({
    type: z.literal('resource'),
    resource: resourceContents.refine(({ text: said, blob }) => (said ?? blob) !== undefined),
  }),
])
export type Block = z.output<typeof block>

/** `raw`: the `result` of the response, as it came. */
export function readResult(raw: unknown): ReadResult {
  const result = isObject(raw) ? raw : { content: raw }
  const { content, structuredContent, isError, _meta: meta } = result
  const leftOut: string[] = []
  // One block for several, or a text for blocks, as some servers write.
  const parts: unknown[] = [content ?? []].flat()
  const blocks = parts.slice(0, MAX_BLOCKS).flatMap((part) => {
    const read = readBlock(part)
    if (typeof read === 'object') return [read]
    leftOut.push(read)
    return []
  })
  if (parts.length > MAX_BLOCKS) leftOut.push(`all but the first ${MAX_BLOCKS} blocks`)
  const tooDeep = deeperThan(structuredContent, MAX_DEPTH)
  if (tooDeep) leftOut.push(`structured content that is nested more than ${MAX_DEPTH} deep`)
  const structured = tooDeep ? undefined : (structuredContent ?? undefined)
  const others = otherMembers(result)
  if ((content ?? structured) === undefined && !tooDeep && others !== undefined)
    blocks.push({ type: 'text', text: others })
  return {
    blocks,
    structured,
    isError: isError === true || isError === 1 || (typeof isError === 'string' && /^true$/i.test(isError)),
    meta,
    leftOut,
  }
}

/** A block, or what it is that cannot be used. */
function readBlock(part: unknown): Block | string {
  const read = block.safeParse(part).data
  if (read !== undefined) return read
  const said = plainText(part) ?? plainText(member(part, 'text'))
  if (said !== undefined) return { type: 'text', text: said }
  if (!isObject(part)) return 'something that is no block'
  const { type } = part
  if (typeof type !== 'string') return 'a block without a type'
  const known = block.options.some(({ shape }) => shape.type.safeParse(type).success)
  const kind = JSON.stringify(type.slice(0, KIND_CHARS))
  return known ? `a block of type ${kind} that is not complete` : `a block of the unknown type ${kind}`
}

/** Values that can only be meant as text. */
function plainText(value: unknown): string | undefined {
  if (typeof value === 'string') return value
  const isPlain = typeof value === 'number' || typeof value === 'boolean' || isExactNumber(value)
  return isPlain ? stringifyExactly(value) : undefined
}

/** Content of a result without `content`, as earlier revisions allowed. */
function otherMembers(result: Record<string, unknown>): string | undefined {
  const { content: _c, structuredContent: _s, isError: _e, _meta: _m, resultType: _r, ...others } = result
  if (Object.keys(others).length === 0 || deeperThan(others, MAX_DEPTH)) return undefined
  return stringifyExactly(others, 2)
}

/** One sentence for the model; empty when nothing was left out. */
export function leftOutText(leftOut: readonly string[]): string {
  const kinds = [...Map.groupBy(leftOut, (one) => one)].map(([kind, { length }]) =>
    length === 1 ? kind : `${kind} (${length} times)`,
  )
  if (kinds.length === 0) return ''
  const more = kinds.length > SHOWN_KINDS ? [`${kinds.length - SHOWN_KINDS} other kinds`] : []
  return `[Left out of this result: ${[...kinds.slice(0, SHOWN_KINDS), ...more].join(', ')}.]`
}
