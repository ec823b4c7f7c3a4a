/**
 * The model seam. A model is one async generator: it yields what may be shown while it arrives and
 * returns the whole answer. Implementations: `http-model.ts` (any endpoint),
 * `demo.ts` (in process).
 */
import type { TokenUsage } from '@sandlot/shared/chat/event-meta'
import type { ModelErrorClass, SetIn } from '@sandlot/shared/chat/reasons'
import type { ModelWindow } from './context-window.ts'

export interface SystemMessage {
  role: 'system'
  content: string
}
export interface UserMessage {
  role: 'user'
  content: string
  images?: readonly ModelImage[]
}
export interface AssistantMessage {
  role: 'assistant'
  /** Empty when the answer was only calls. */
  content: string
  calls: ModelCall[]
  /** Set where the provider that is asked made this answer, over the same wire. */
  replay?: readonly ReplayItem[]
}
/**
 * One output item of an answer, in the provider's order. Text and calls are in the message; an item
 * refers to them.
 */
export interface ReplayItem {
  /** UTF-16 units of the message's text, which follow those of the items before. */
  chars?: number
  /** The place of one of the message's calls, from 0. */
  call?: number
  /**
   * Members that must return to the provider, unchanged: of a reasoning item all, of a text or a
   * call those that nothing else holds.
   */
  raw?: Record<string, unknown>
}
export interface ToolMessage {
  role: 'tool'
  callId: string
  content: string
  /**
   * Go to the model in one user message behind the results of the turn: providers refuse them in
   * tool messages.
   */
  images?: readonly ModelImage[]
}
/** An image. A model without image input gets a sentence with type and size instead. */
export interface ModelImage {
  /** For example `image/png`. */
  mimeType: string
  /** Base64. */
  data: string
}
export type ModelMessage = SystemMessage | UserMessage | AssistantMessage | ToolMessage

/** A call as the model made it. */
export interface ModelCall {
  id: string
  name: string
  /** An object when the text was one; otherwise the text, with why it cannot run. */
  args: unknown
  /** Set when the arguments must not be executed; the result explains it to the model. */
  invalid?: 'truncated' | 'malformed' | 'not_object'
  /** Kept on the call and sent back, for example Gemini's thought signature. */
  replay?: Record<string, unknown>
}

/** US dollars for a million tokens. */
interface Rates {
  input: number
  output: number
  /** Price of input from the provider's cache. Default: as `input`. */
  cached?: number
  /** Price of input that is written to the cache. Default: as `input`. */
  cacheWrite?: number
  /** The same, if the provider keeps it for an hour. Default: as `cacheWrite`. */
  cacheWriteHour?: number
  /** Price of output that is reasoning. Default: as `output`. */
  reasoning?: number
}

export interface Price extends Rates {
  /** Rates of a whole request with more than `above` tokens of input, in ascending order. */
  steps?: readonly (Rates & { above: number })[]
  /** The price at a moment (epoch milliseconds), if it depends on the date or the time of day. */
  at?: (moment: number) => Price | undefined
}

export interface ModelTool {
  name: string
  description: string
  /** JSON Schema of the arguments, stable key order. */
  parameters: Record<string, unknown>
}

export interface ModelRequest {
  messages: readonly ModelMessage[]
  /** Absent or empty: the request has no `tools` member. The same in every request of a session. */
  tools?: readonly ModelTool[]
  maxTokens?: number
  /** The wire whose items its messages hold. Over another one they are left out. */
  wire?: string | undefined
  /** True: one whole answer is asked for, whose error may say more than a stream that breaks. */
  whole?: boolean
}

/**
 * Chunks while the model answers. Offsets are implied: pieces follow one another. They equal the
 * answer, but for one case: a text may turn out to have been thoughts at its beginning, which only
 * the answer shows.
 */
export type ModelChunk =
  | { type: 'text'; text: string }
  | { type: 'thought'; text: string }
  /**
   * A call has begun, or has grown noticeably; only for the screen. `place`: the number of the call
   * in the answer, from 0. `args`: its arguments so far, as the model wrote them. A later one of
   * the same place replaces it.
   */
  | { type: 'call'; place: number; name: string; args: string }

export interface ModelAnswer {
  text: string
  thought: string
  calls: ModelCall[]
  /** Only a hint: calls decide, not this. */
  finish: 'stop' | 'length' | 'tool_calls' | 'content_filter' | 'unknown'
  usage: TokenUsage
  /** Absent: the provider wants nothing back but text and calls. */
  replay?: readonly ReplayItem[]
  /** The wire that it came over: other prompts may switch the model in between. Absent: its own. */
  wire?: string | undefined
  /** SHA-256 of the request's body, as it was sent. */
  requestDigest?: string
}

/**
 * A request that gave no answer. `message` is for administrators: what happened and what to do,
 * with the address and the setting, never a key.
 */
export class ModelError extends Error {
  override readonly name = 'ModelError'
  /** The failure in words for everybody, without addresses and settings. */
  readonly forMembers: string
  /** The place of the setting that may be wrong. Undefined: no setting is. */
  readonly setIn: SetIn | undefined
  readonly class: ModelErrorClass
  readonly retryable: boolean
  /** Milliseconds the provider asked us to wait. */
  readonly waitMs: number | undefined
  readonly status: number | undefined
  /** The provider's own words, without secrets. Undefined: the failure is of our own finding. */
  readonly said: string | undefined
  /**
   * The provider's own name for the request, which its support asks for. Set where the answer's
   * head is known.
   */
  requestId: string | undefined
  /** Tokens that the provider names as the limit of its context. */
  readonly limit: number | undefined

  constructor(
    errorClass: ModelErrorClass,
    message: string,
    details: {
      retryable: boolean
      /** Default: the message. */
      forMembers?: string
      setIn?: SetIn
      waitMs?: number
      status?: number
      limit?: number
      said?: string
      cause?: unknown
    },
  ) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.forMembers = details.forMembers ?? message
    this.setIn = details.setIn
    this.class = errorClass
    this.retryable = details.retryable
    this.waitMs = details.waitMs
    this.status = details.status
    this.said = details.said
    this.limit = details.limit
  }
}

export interface Model {
  /** The model's name for people and for the log. */
  readonly name: string
  /** The API that it is asked over, which may change with an answer. Absent: it is in process. */
  readonly wire?: string
  /**
   * Stands for the provider that takes back the reasoning in its answers: another one refuses it.
   * Absent: the model's name does.
   */
  readonly origin?: string
  readonly demo: boolean
  readonly window: ModelWindow
  /** The price of its tokens. Absent: unknown. */
  readonly price?: Price
  /**
   * Levels of thought, in the provider's words, weakest first. Absent or empty: there is no choice.
   */
  readonly thoughtLevels?: readonly string[]
  /** The same model at this level. `level`: one of `thoughtLevels`. */
  atLevel?(level: string): Model
  /** True if it reads images. Absent: it sends nothing to a provider, like the demo. */
  readonly images?: boolean
  /**
   * One attempt. Calls `onPiece` with each piece as it arrives, synchronously. Rejects with
   * `ModelError`, or the signal's reason when aborted; retrying is the loop's business.
   */
  stream(
    request: ModelRequest,
    signal: AbortSignal,
    onPiece: (piece: ModelChunk) => void,
  ): Promise<ModelAnswer>
}

/** The same model, asked by this function. What it says of itself stays current. */
export function askedBy(model: Model, stream: Model['stream']): Model {
  return Object.create(model, { stream: { value: stream, enumerable: true } }) as Model
}
