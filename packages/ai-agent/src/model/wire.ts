/** The body of a Chat Completions request. The same request gives the same bytes: members are in a fixed order. */
import type { JsonObject } from './json.ts'
import { isObject } from './json.ts'
import type { AssistantMessage, ModelCall, ModelMessage, ModelRequest } from './model.ts'

export interface WireOptions {
  model: string
  /** False for the few endpoints that refuse `stream_options`. */
  includeUsage: boolean
  /** The name that this endpoint knows for the limit of the answer. */
  maxTokensName: 'max_tokens' | 'max_completion_tokens'
}

export function requestBody(request: ModelRequest, options: WireOptions): JsonObject {
  const tools = request.tools ?? []
  return {
    model: options.model,
    messages: request.messages.map(wireMessage),
    ...(tools.length === 0
      ? {}
      : {
          tools: tools
            .toSorted((a, b) => (a.name < b.name ? -1 : 1))
            .map(({ name, description, parameters }) => ({
              type: 'function',
              function: { name, description, parameters },
            })),
        }),
    stream: true,
    ...(options.includeUsage ? { stream_options: { include_usage: true } } : {}),
    ...(request.maxTokens === undefined ? {} : { [options.maxTokensName]: request.maxTokens }),
  }
}

function wireMessage(message: ModelMessage): JsonObject {
  switch (message.role) {
    case 'system':
    case 'user':
      return { role: message.role, content: message.content }
    case 'assistant':
      return wireAssistant(message)
    case 'tool':
      return { role: 'tool', tool_call_id: message.callId, content: message.content }
  }
}

function wireAssistant({ content, calls, replay }: AssistantMessage): JsonObject {
  const extra = replay ?? {}
  if (calls.length === 0) return { role: 'assistant', content, ...extra }
  return {
    role: 'assistant',
    // Several providers refuse an empty text beside calls; null is what OpenAI itself sends.
    content: content === '' ? null : content,
    tool_calls: calls.map(wireCall),
    ...extra,
  }
}

function wireCall({ id, name, args, replay }: ModelCall): JsonObject {
  // Arguments that could not be read go back as an empty object: a history with broken JSON is refused for good. The
  // tool message says what was wrong with them.
  const object = isObject(args) ? args : {}
  return { id, type: 'function', function: { name, arguments: JSON.stringify(object) }, ...replay }
}
