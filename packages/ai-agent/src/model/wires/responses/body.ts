/**
 * The body of a Responses request. The same request gives the same bytes: members are in a fixed
 * order.
 */
import { stringifyExactly } from '@sandlot/shared/base/exact-numbers'
import { storableJson } from '@sandlot/shared/base/storable-text'
import { type JsonObject, isObject } from '../../json.ts'
import type {
  AssistantMessage,
  ModelCall,
  ModelImage,
  ModelMessage,
  ModelRequest,
  ModelTool,
  ToolMessage,
} from '../../model.ts'
import { strictSchema } from '../../strict-schema.ts'
import { imageNote, legalName } from '../sendable.ts'
import type { BodyOptions } from '../wire.ts'
import { BETWEEN_MESSAGES } from './items.ts'

/** The smallest limit of an answer that OpenAI takes. */
const LEAST_OUTPUT_TOKENS = 16

export function requestBody(request: ModelRequest, options: BodyOptions): JsonObject {
  const { effort, profile, refused } = options
  const [first, ...others] = request.messages
  const hasSystem = first?.role === 'system'
  const { maxTokens, tools = [] } = request
  const reasons = profile.thoughtLevels.length > 0 || effort !== undefined
  const wanted = { effort, summary: refused.has('summary') ? undefined : 'auto' }
  const asks = reasons && !refused.has('reasoning') && (effort ?? wanted.summary) !== undefined
  const body = {
    model: options.model,
    instructions: hasSystem ? first.content : undefined,
    input: inputItems(hasSystem ? others : request.messages, options),
    tools: tools.length === 0 ? undefined : sortedTools(tools, refused),
    stream: options.streaming,
    store: refused.has('store') ? undefined : false,
    include: reasons && !refused.has('include') ? ['reasoning.encrypted_content'] : undefined,
    reasoning: asks ? wanted : undefined,
    max_output_tokens:
      maxTokens === undefined || refused.has('max_output_tokens')
        ? undefined
        : Math.max(maxTokens, LEAST_OUTPUT_TOKENS),
  }
  const sent = Object.entries(body).filter(([, value]) => value !== undefined)
  return storableJson(Object.fromEntries(sent)) as JsonObject
}

function sortedTools(tools: readonly ModelTool[], refused: BodyOptions['refused']): JsonObject[] {
  return tools
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .map(({ name, description, parameters }) => {
      const tool = { type: 'function', name, description }
      if (refused.has('strict_name')) return { ...tool, parameters }
      const strict = refused.has('strict') ? undefined : strictSchema(parameters)
      // Without the member OpenAI takes it for true, and changes the schema.
      return { ...tool, parameters: strict ?? parameters, strict: strict !== undefined }
    })
}

// ── Input items ─────────────────────────────────────────────────────────────────────────────────

/**
 * Images stand in the output of their call; where an endpoint refuses that, in one message of the
 * user behind all outputs of the turn.
 */
function inputItems(messages: readonly ModelMessage[], options: BodyOptions): JsonObject[] {
  const items: JsonObject[] = []
  let waiting: ModelImage[] = []
  const flush = (): void => {
    if (waiting.length > 0) items.push(userItem('Images from the tool results above.', waiting))
    waiting = []
  }
  for (const message of messages) {
    if (message.role === 'tool') {
      const { item, beside } = outputItem(message, options)
      items.push(item)
      waiting.push(...beside)
      continue
    }
    flush()
    if (message.role === 'assistant') items.push(...assistantItems(message, options))
    else if (message.role === 'system')
      items.push({ type: 'message', role: 'system', content: message.content })
    else items.push(withNotes(message.content, message.images ?? [], options))
  }
  flush()
  return items
}

function withNotes(text: string, images: readonly ModelImage[], { profile }: BodyOptions): JsonObject {
  if (profile.images) return userItem(text, images)
  return userItem([text, ...images.map(imageNote)].join('\n'), [])
}

function userItem(text: string, images: readonly ModelImage[]): JsonObject {
  const content = images.length === 0 ? text : [inputText(text), ...images.map(inputImage)]
  return { type: 'message', role: 'user', content }
}

const inputText = (text: string): JsonObject => ({ type: 'input_text', text })
const inputImage = ({ mimeType, data }: ModelImage): JsonObject => ({
  type: 'input_image',
  image_url: `data:${mimeType};base64,${data}`,
})

/** `beside`: images for a message of their own. */
function outputItem(
  { callId, content, images = [] }: ToolMessage,
  { profile, refused }: BodyOptions,
): { item: JsonObject; beside: readonly ModelImage[] } {
  const item = (output: unknown): JsonObject => ({ type: 'function_call_output', call_id: callId, output })
  if (images.length === 0) return { item: item(content), beside: [] }
  if (!profile.images)
    return {
      item: item([content, ...images.map(imageNote)].filter((text) => text !== '').join('\n')),
      beside: [],
    }
  if (refused.has('output_images')) return { item: item(content), beside: images }
  const text = content === '' ? [] : [inputText(content)]
  return { item: item([...text, ...images.map(inputImage)]), beside: [] }
}

/**
 * An answer as its provider made it, item by item; text and calls that no item names follow.
 * Reasoning at the end is left out: it is refused without the item that it led to.
 */
function assistantItems(message: AssistantMessage, options: BodyOptions): JsonObject[] {
  const { content, calls, replay = [] } = message
  const items: JsonObject[] = []
  const left = new Set(calls.keys())
  const addCall = (place: number, raw?: JsonObject): void => {
    const call = calls[place]
    if (call !== undefined && left.delete(place)) items.push({ ...callItem(call), ...raw })
  }
  let at = 0
  for (const { chars, call, raw } of replay) {
    if (chars !== undefined) {
      const text = content.slice(at, (at += chars))
      items.push(...textItem(at < content.length ? withoutGap(text) : text, raw))
    } else if (call !== undefined) addCall(call, raw)
    else if (raw !== undefined) items.push(reasoningItem(raw, options))
  }
  const rest = textItem(content.slice(at))
  items.push(...rest)
  for (const place of calls.keys()) addCall(place)
  const end = items.findLastIndex(({ type }) => type === 'message' || type === 'function_call')
  return items.slice(0, end + 1)
}

/** Plain text, which every endpoint takes; text in parts needs the id of a stored message. */
function textItem(text: string, raw?: JsonObject): JsonObject[] {
  return text === '' ? [] : [{ type: 'message', role: 'assistant', content: text, ...raw }]
}

function withoutGap(text: string): string {
  return text.endsWith(BETWEEN_MESSAGES) ? text.slice(0, -BETWEEN_MESSAGES.length) : text
}

function callItem({ id, name, args }: ModelCall): JsonObject {
  // Arguments that could not be read go back as an empty object, as in the chat wire.
  const object = isObject(args) ? storableJson(args) : {}
  return { type: 'function_call', call_id: id, name: legalName(name), arguments: stringifyExactly(object) }
}

/**
 * An id makes OpenAI look for an item that it did not store; encrypted content stands for itself.
 * Some endpoints before it require the id all the same.
 */
function reasoningItem(raw: JsonObject, { refused }: BodyOptions): JsonObject {
  const { id, ...rest } = raw
  const standsAlone = raw['encrypted_content'] !== undefined && !refused.has('no_ids')
  return id === undefined || standsAlone ? rest : { id, ...rest }
}

// ── What an endpoint refuses ────────────────────────────────────────────────────────────────────

const UNKNOWN =
  /unrecogni[sz]ed|unknown|unsupported|unexpected|not (?:supported|permitted|allowed|enabled)|forbidden|extra inputs/i

interface Lesson {
  name: string
  /** Found in the words of an endpoint that refuses it. */
  words: RegExp
  /** False: also without words that say that it is unknown. */
  unknown: boolean
  /** True if the body has it. */
  sent: (body: JsonObject) => boolean
}

/** Ordered: the first that fits is tried first. */
const LESSONS: readonly Lesson[] = [
  {
    name: 'include',
    words: /\binclude\b|encrypted[_ ]content/i,
    unknown: true,
    sent: ({ include }) => include !== undefined,
  },
  {
    // Refused to organisations that are not verified, too.
    name: 'summary',
    words: /reasoning\W{0,3}summar|\bsummar(?:y|ies)\b/i,
    unknown: false,
    sent: ({ reasoning }) => isObject(reasoning) && reasoning['summary'] !== undefined,
  },
  {
    // But for a level that the model does not have, which its user has chosen.
    name: 'reasoning',
    words:
      /(?:parameter|argument|field|input|propert|key)\w*\b[^.]{0,40}\breasoning\b|\breasoning\b[^.]{0,20}(?:parameter|is not)/i,
    unknown: true,
    sent: ({ reasoning }) => reasoning !== undefined,
  },
  {
    name: 'max_output_tokens',
    words: /\bmax_output_tokens\b/,
    unknown: true,
    sent: ({ max_output_tokens }) => max_output_tokens !== undefined,
  },
  { name: 'store', words: /\bstore\b/, unknown: true, sent: ({ store }) => store !== undefined },
  {
    name: 'strict_name',
    words: /\bstrict\b/,
    unknown: true,
    sent: ({ tools }) => someObject(tools, (tool) => tool['strict'] !== undefined),
  },
  {
    name: 'strict',
    words: /\bstrict\b|\bschema\b|invalid_function_parameters/i,
    unknown: false,
    sent: ({ tools }) => someObject(tools, (tool) => tool['strict'] === true),
  },
  {
    name: 'no_ids',
    words:
      /(?:missing|required)\b[^.]{0,60}(?:input\[\d+\]\.id\b|\bid\b)|\bid\b[^.]{0,40}\b(?:missing|required)/i,
    unknown: false,
    sent: ({ input }) => someObject(input, ({ type, id }) => type === 'reasoning' && id === undefined),
  },
  {
    name: 'output_images',
    words: /\boutput\b|input_image|image/i,
    unknown: false,
    sent: ({ input }) => someObject(input, ({ output }) => Array.isArray(output)),
  },
]

/** See `Wire`. */
export function learn(words: string, body: JsonObject, { refused }: BodyOptions): string | undefined {
  return LESSONS.find(
    (lesson) =>
      !refused.has(lesson.name) &&
      lesson.words.test(words) &&
      (!lesson.unknown || UNKNOWN.test(words)) &&
      lesson.sent(body),
  )?.name
}

function someObject(list: unknown, test: (member: JsonObject) => boolean): boolean {
  return Array.isArray(list) && list.filter(isObject).some(test)
}
