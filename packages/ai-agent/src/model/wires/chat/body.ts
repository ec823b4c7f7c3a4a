/**
 * The body of a Chat Completions request. The same request gives the same bytes: members are in a
 * fixed order.
 */
import { stringifyExactly } from '@sandlot/shared/base/exact-numbers'
import { storableJson } from '@sandlot/shared/base/storable-text'
import { type JsonObject, isObject, member } from '../../json.ts'
import type {
  AssistantMessage,
  ModelCall,
  ModelImage,
  ModelMessage,
  ModelRequest,
  ModelTool,
} from '../../model.ts'
import type { Profile } from '../../profiles.ts'
import { strictSchema } from '../../strict-schema.ts'
import { imageNote, legalName } from '../sendable.ts'
import type { BodyOptions } from '../wire.ts'
import { reasoningToSend } from './reasoning.ts'

export function requestBody(request: ModelRequest, options: BodyOptions): JsonObject {
  const tools = request.tools ?? []
  const body = {
    model: options.model,
    messages: wireMessages(request.messages, options),
    ...(tools.length === 0
      ? {}
      : {
          tools: tools.toSorted((a, b) => (a.name < b.name ? -1 : 1)).map((tool) => wireTool(tool, options)),
        }),
    stream: options.streaming,
    ...(options.streaming && !options.refused.has('stream_options')
      ? { stream_options: { include_usage: true } }
      : {}),
    ...(request.maxTokens === undefined ? {} : { [maxTokensName(options)]: request.maxTokens }),
    reasoning_effort: options.effort,
  }
  return storableJson(body) as JsonObject
}

function wireTool({ name, description, parameters }: ModelTool, options: BodyOptions): JsonObject {
  const asks = options.profile.strictTools && !options.refused.has('strict')
  const strict = asks ? strictSchema(parameters) : undefined
  const schema = strict === undefined ? { parameters } : { parameters: strict, strict: true }
  return { type: 'function', function: { name, description, ...schema } }
}

/**
 * All results of a turn first, then the images of all of them: nothing may stand between results.
 */
function wireMessages(messages: readonly ModelMessage[], options: BodyOptions): JsonObject[] {
  const { profile } = options
  const wire: JsonObject[] = []
  let waiting: ModelImage[] = []
  const flush = (): void => {
    if (waiting.length > 0) wire.push(withImages('Images from the tool results above.', waiting))
    waiting = []
  }
  for (const message of messages) {
    if (message.role === 'tool') {
      const images = message.images ?? []
      const notes = profile.images ? [] : images.map(imageNote)
      if (profile.images) waiting.push(...images)
      const content = [message.content, ...notes].filter((text) => text !== '').join('\n')
      wire.push({ role: 'tool', tool_call_id: message.callId, content })
      continue
    }
    flush()
    wire.push(wireMessage(message, options))
  }
  flush()
  return wire
}

function wireMessage(message: Exclude<ModelMessage, { role: 'tool' }>, options: BodyOptions): JsonObject {
  const { profile } = options
  if (message.role === 'assistant') return wireAssistant(message, options)
  const images = message.role === 'user' ? (message.images ?? []) : []
  if (images.length === 0) return { role: message.role, content: message.content }
  if (profile.images) return withImages(message.content, images)
  return { role: message.role, content: [message.content, ...images.map(imageNote)].join('\n') }
}

function withImages(text: string, images: readonly ModelImage[]): JsonObject {
  const parts = images.map(({ mimeType, data }) => ({
    type: 'image_url',
    image_url: { url: `data:${mimeType};base64,${data}` },
  }))
  return { role: 'user', content: [{ type: 'text', text }, ...parts] }
}

function wireAssistant(
  { content, calls, replay }: AssistantMessage,
  { profile, refused }: BodyOptions,
): JsonObject {
  const extra = replayed(replay?.[0]?.raw ?? {}, profile, calls.length > 0)
  if (calls.length === 0) return { role: 'assistant', content, ...extra }
  return {
    role: 'assistant',
    // Several providers refuse an empty text beside calls; null is what OpenAI itself sends.
    content: content === '' && !refused.has('null_content') ? null : content,
    tool_calls: calls.map((call) => wireCall(call, profile)),
    ...extra,
  }
}

function replayed(stored: JsonObject, profile: Profile, withCalls: boolean): JsonObject {
  const { extra_content, ...rest } = reasoningToSend(stored, profile, withCalls)
  const { missing } = profile.reasoning
  const stands = withCalls && missing !== undefined && rest[missing.field] === undefined
  return {
    ...(stands ? { [missing.field]: missing.text } : {}),
    ...rest,
    ...(extra_content === undefined || !profile.extraContent ? {} : { extra_content }),
  }
}

function wireCall({ id, name, args, replay }: ModelCall, profile: Profile): JsonObject {
  // Arguments that could not be read go back as an empty object: a history with broken JSON is
  // refused for good. The tool message says what was wrong with them. Cleaned before they become
  // text, where an escape would hide a surrogate.
  const object = isObject(args) ? storableJson(args) : {}
  const fn = { name: legalName(name), arguments: stringifyExactly(object) }
  return { id, type: 'function', function: fn, ...(profile.extraContent ? replay : {}) }
}

// ── What an endpoint refuses ────────────────────────────────────────────────────────────────────

/** The name that this endpoint knows for the limit of the answer. */
function maxTokensName({ profile, refused }: BodyOptions): Profile['maxTokensName'] {
  if (!refused.has('max_tokens_name')) return profile.maxTokensName
  return profile.maxTokensName === 'max_tokens' ? 'max_completion_tokens' : 'max_tokens'
}

/** See `Wire`. */
export function learn(words: string, body: JsonObject, options: BodyOptions): string | undefined {
  const { refused } = options
  if (!refused.has('stream_options') && /stream_options|include_usage/.test(words)) return 'stream_options'
  if (!refused.has('max_tokens_name') && wantsOtherName(words, maxTokensName(options)))
    return 'max_tokens_name'
  if (!refused.has('strict') && /\bstrict\b|\bschema\b/i.test(words) && sendsStrict(body)) return 'strict'
  const refusesNull = /content/i.test(words) && /\bnull\b|\bnone\b|string/i.test(words)
  if (!refused.has('null_content') && refusesNull && sendsNull(body)) return 'null_content'
  return undefined
}

const UNKNOWN = /unrecogni[sz]ed|unknown|unsupported|not (?:supported|permitted|allowed)|extra_forbidden/i

function wantsOtherName(words: string, name: Profile['maxTokensName']): boolean {
  // An endpoint that knows the newer name mentions it; one that does not must report it, for its
  // value may be wrong too.
  return /max_completion_tokens/.test(words) && (name === 'max_tokens' || UNKNOWN.test(words))
}

function sendsStrict({ tools }: JsonObject): boolean {
  return Array.isArray(tools) && tools.some((tool) => member(member(tool, 'function'), 'strict') === true)
}

function sendsNull({ messages }: JsonObject): boolean {
  return (
    Array.isArray(messages) && messages.some((message) => isObject(message) && message['content'] === null)
  )
}
