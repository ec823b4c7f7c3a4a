/**
 * The body of a Messages request. The same request gives the same bytes. Members are in the order
 * in which the provider caches them: tools, system, messages.
 */
import { storableJson } from '@sandlot/shared/base/storable-text'
import { type JsonObject, isObject } from '../../json.ts'
import type {
  AssistantMessage,
  ModelCall,
  ModelImage,
  ModelMessage,
  ModelRequest,
  ReplayItem,
  ToolMessage,
} from '../../model.ts'
import { imageNote, legalName } from '../sendable.ts'
import type { BodyOptions } from '../wire.ts'
import { type Turn, answerLimit, isThought, thinkingMembers } from './tuning.ts'

export function requestBody(request: ModelRequest, options: BodyOptions): JsonObject {
  const system = request.messages.flatMap(({ role, content }) =>
    role === 'system' && content.trim() !== '' ? [textBlock(content)] : [],
  )
  const tools = (request.tools ?? [])
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .map(({ name, description, parameters }): JsonObject => {
      const input_schema = inputSchema(parameters, options.refused.has('schema'))
      return { name, description, input_schema }
    })
  const turns = wireTurns(request.messages, options.profile.images)
  const limit = answerLimit(request, options)
  if (!options.refused.has('cache_control')) markForCache(tools, system, turns)
  return storableJson({
    model: options.model,
    max_tokens: limit,
    ...thinkingMembers(request.maxTokens === undefined, limit, turns, options),
    stream: options.streaming,
    ...(tools.length === 0 ? {} : { tools }),
    ...(system.length === 0 ? {} : { system }),
    messages: turns,
  }) as JsonObject
}

/**
 * The schema as the API requires it: of an object. `plain`: without alternatives at its top, which
 * Anthropic refuses; our own validation has them all the same.
 */
function inputSchema(parameters: JsonObject, plain: boolean): JsonObject {
  const { anyOf: _any, oneOf: _one, allOf: _all, ...rest } = parameters
  return { type: 'object', ...(plain ? rest : parameters) }
}

/**
 * Marks the ends of what later requests begin with: tools, system, this request, and the request
 * before it, whose end may be more blocks away than the provider looks back.
 */
function markForCache(tools: JsonObject[], system: JsonObject[], turns: readonly Turn[]): void {
  const asked = turns.filter(({ role }) => role === 'user').slice(-2)
  for (const blocks of [tools, system, ...asked.map(({ content }) => content)]) {
    const last = blocks.at(-1)
    if (last !== undefined) blocks[blocks.length - 1] = { ...last, cache_control: { type: 'ephemeral' } }
  }
}

/** The turns of user and assistant, which alternate: what follows in one role is one message. */
function wireTurns(messages: readonly ModelMessage[], images: boolean): Turn[] {
  const turns: Turn[] = []
  const ids = new LegalIds()
  for (const message of messages) {
    if (message.role === 'system') continue
    const role = message.role === 'assistant' ? 'assistant' : 'user'
    const content =
      message.role === 'assistant'
        ? assistantBlocks(message, ids)
        : message.role === 'tool'
          ? [toolResult(message, images, ids)]
          : partsOf(message.content, message.images ?? [], images)
    const last = turns.at(-1)
    if (content.length === 0) continue
    if (last?.role === role) last.content.push(...content)
    else turns.push({ role, content })
  }
  // An answer cannot be the first message.
  if (turns[0]?.role === 'assistant') turns.unshift({ role: 'user', content: [textBlock('(continued)')] })
  return turns
}

function textBlock(text: string): JsonObject {
  return { type: 'text', text }
}

/** Images first, as the provider advises. It refuses texts of nothing but space. */
function partsOf(text: string, images: readonly ModelImage[], takes: boolean): JsonObject[] {
  const notes = takes ? [] : images.map(imageNote)
  const words = [text, ...notes].filter((line) => line.trim() !== '').join('\n')
  const blocks = (takes ? images : []).map(({ mimeType, data }) => ({
    type: 'image',
    source: { type: 'base64', media_type: mimeType, data },
  }))
  return [...blocks, ...(words === '' ? [] : [textBlock(words)])]
}

function toolResult(
  { callId, content, images = [] }: ToolMessage,
  takes: boolean,
  ids: LegalIds,
): JsonObject {
  const parts = partsOf(content, images, takes)
  // An empty one has no content.
  const result = parts.length === 0 ? {} : { content: parts }
  return { type: 'tool_result', tool_use_id: ids.legal(callId), ...result }
}

/** The answer in the provider's order; what its items do not name follows before the first call. */
function assistantBlocks({ content, calls, replay = [] }: AssistantMessage, ids: LegalIds): JsonObject[] {
  const named = new Set(replay.map(({ call }) => call))
  const chars = replay.reduce((sum, item) => sum + (item.chars ?? 0), 0)
  const firstCall = replay.findIndex(({ call }) => call !== undefined)
  const items: ReplayItem[] = replay.toSpliced(firstCall === -1 ? replay.length : firstCall, 0, {
    chars: Math.max(0, content.length - chars),
  })
  for (const place of calls.keys()) if (!named.has(place)) items.push({ call: place })
  const blocks: JsonObject[] = []
  let at = 0
  for (const { chars: length, call: place, raw } of items) {
    const call = place === undefined ? undefined : calls[place]
    if (call !== undefined) blocks.push(toolUse(call, ids))
    else if (length !== undefined) {
      const text = content.slice(at, at + length)
      at += length
      if (text.trim() !== '') blocks.push({ ...textBlock(text), ...raw })
    } else if (place === undefined && raw !== undefined) blocks.push(raw)
  }
  // Thought that led to nothing: the provider refuses it at the end.
  while (isThought(blocks.at(-1))) blocks.pop()
  return blocks
}

function toolUse({ id, name, args }: ModelCall, ids: LegalIds): JsonObject {
  // Arguments that could not be read go back as an empty object; the result says what was wrong.
  return { type: 'tool_use', id: ids.legal(id), name: legalName(name), input: isObject(args) ? args : {} }
}

/** Ids that other providers gave, in the letters that this one takes; different ones stay so. */
class LegalIds {
  readonly #ids = new Map<string, string>()
  readonly #taken = new Set<string>()

  legal(id: string): string {
    const known = this.#ids.get(id)
    if (known !== undefined) return known
    const base = legalName(id)
    let legal = base
    for (let more = 2; this.#taken.has(legal); more++) legal = `${base}_${more}`
    this.#ids.set(id, legal)
    this.#taken.add(legal)
    return legal
  }
}
