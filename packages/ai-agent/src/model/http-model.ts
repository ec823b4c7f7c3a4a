/** A model behind an HTTP endpoint, over any of the wires. */
import type { WireName } from '@sandlot/shared/account/models-api'
import { type SilenceLimits, BodyReader, SseParser, SseTooLargeError, StartOfBody } from './sse.ts'
import { ContextWindow } from './context-window.ts'
import type { SetIn } from '@sandlot/shared/chat/reasons'
import { type ErrorContext, modelError, withRequestId } from './errors.ts'
import { EventReader } from './event-reader.ts'
import { isKnownProvider, modelFacts } from './facts.ts'
import type { JsonObject } from './json.ts'
import { type Model, type ModelAnswer, type ModelRequest, type Price, ModelError } from './model.ts'
import { loadedWindow } from './loaded-window.ts'
import { type Profile, profileFor } from './profiles.ts'
import { withoutStrictNulls } from './strict-schema.ts'
import { type Posted, createTransport, insideContainer, requestHeaders, shownUrl } from './transport.ts'
import { anthropicWire } from './wires/anthropic/anthropic-wire.ts'
import { chatWire } from './wires/chat/chat-wire.ts'
import { responsesWire } from './wires/responses/responses-wire.ts'
import type { AnswerReader, BodyOptions, Wire } from './wires/wire.ts'

export interface HttpModelOptions {
  /** For example `https://api.openai.com/v1`. */
  baseUrl: string
  /** Default `chat`. */
  wire?: WireName
  /** See `Model`. */
  origin?: string
  /** May be empty for local servers. */
  apiKey: string
  model: string
  /** The name for people and the log. Default: as `model`. */
  label?: string
  /** The price of its tokens. */
  price?: Price
  /** Tokens. Default: see `ContextWindow`. */
  contextWindow?: number
  /** Default: 60 s, and 120 s. */
  silence?: Partial<SilenceLimits>
  /** True if this process runs in a container. Default: checks the marks of Docker and Podman. */
  inContainer?: boolean
  /** The deployment's corrections to our table of profiles. */
  profile?: Partial<Profile>
  /** False: one JSON answer instead of a stream; it gives the same `ModelAnswer`. Default true. */
  streaming?: boolean
}

export const WIRES: Record<WireName, Wire> = {
  chat: chatWire,
  responses: responsesWire,
  anthropic: anthropicWire,
}

/**
 * Milliseconds until an answer that is not streamed: it comes when all of it is there, behind
 * blanks that keep the connection.
 */
const WHOLE_ANSWER_MS = 600_000

const SPACE = 32
/** After the answer has ended, usage and `[DONE]` may follow; we do not wait longer for them. */
const AFTERWARDS_MS = 5_000

/** `setIn`: see `ErrorContext`. */
export function createHttpModel(options: HttpModelOptions, setIn?: SetIn): Model {
  const baseUrl = new URL(options.baseUrl)
  const apiKey = options.apiKey.trim()
  const wire: Wire = WIRES[options.wire ?? 'chat']
  const { idleMs = 60_000, progressMs = 120_000 } = options.silence ?? {}
  const limitsOf = (streaming: boolean): SilenceLimits => ({
    idleMs,
    progressMs: streaming ? progressMs : Math.max(progressMs, WHOLE_ANSWER_MS),
  })
  const profile = profileFor(baseUrl, options.model, options.profile, wire.name)
  const headersOf = (body: JsonObject, refused: BodyOptions['refused']): Record<string, string> => ({
    ...wire.otherHeaders?.(body, refused),
    ...(apiKey === '' ? {} : wire.headers(apiKey, baseUrl)),
  })
  const context: ErrorContext = {
    model: options.model,
    baseUrl: shownUrl(baseUrl),
    apiKey,
    setIn,
  }
  const post = createTransport({
    baseUrl,
    path: wire.path(baseUrl),
    apiKey,
    inContainer: options.inContainer ?? insideContainer(),
    context,
  })
  const about = { model: options.model, profile }
  const isSet = options.contextWindow !== undefined
  const isProvider = !isSet && isKnownProvider(baseUrl.href)
  const window = new ContextWindow({
    set: options.contextWindow,
    table: isSet ? undefined : modelFacts(options.model, baseUrl.href).contextWindow,
    ask: () => {
      const headers = requestHeaders(baseUrl, apiKey, headersOf({}, new Set()))
      return loadedWindow(shownUrl(baseUrl), headers, options.model, isProvider)
    },
    published: isProvider,
  })
  /** Names of all that this endpoint refused: it is not sent again. */
  let refused: ReadonlySet<string> = new Set()

  async function open(
    request: ModelRequest,
    effort: string | undefined,
    streaming: boolean,
    connection: AbortController,
  ): Promise<Posted> {
    const before = refused
    const headTimeoutMs = streaming ? idleMs : Math.max(idleMs, WHOLE_ANSWER_MS)
    const holds = window.from === 'assumed' ? undefined : window.tokens
    let options: BodyOptions = { ...about, streaming, effort, refused, window: holds }
    for (;;) {
      const body = wire.body(request, options)
      try {
        const headers = headersOf(body, options.refused)
        const answer = await post(body, headers, headTimeoutMs, connection)
        // Only what helped: words may name a thing for another reason, and without it this endpoint
        // may refuse all to come.
        if (options.refused !== before) refused = options.refused
        return answer
      } catch (error) {
        const learnt = isRefusal(error, body)
          ? wire.learn(error.said ?? error.message, body, options, request)
          : undefined
        if (learnt === undefined) throw error
        options = { ...options, refused: new Set([...options.refused, learnt]) }
      }
    }
  }

  const at = (effort: string | undefined): Model => ({
    name: options.label ?? options.model,
    wire: wire.name,
    origin: options.origin,
    price: options.price,
    demo: false,
    window,
    thoughtLevels: profile.thoughtLevels,
    atLevel: at,
    images: profile.images,
    async stream(request, signal, onPiece) {
      signal.throwIfAborted()
      const connection = new AbortController()
      let requestId: string | undefined
      const abort = (): void => connection.abort(signal.reason)
      signal.addEventListener('abort', abort, { once: true })
      try {
        const streaming = (options.streaming ?? true) && request.whole !== true
        const posted = await open(request, effort, streaming, connection)
        ;({ requestId } = posted)
        const body = new BodyReader(posted.read, connection, limitsOf(streaming))
        const answer = await readAnswer(body, context, wire.reader(onPiece, profile))
        const calls = answer.calls.map((call) => withoutStrictNulls(call, request.tools))
        return { ...answer, calls, wire: wire.name, requestDigest: posted.requestDigest }
      } catch (error) {
        connection.abort()
        // Whatever an abort makes of the request, it is the abort.
        signal.throwIfAborted()
        throw error instanceof ModelError ? withRequestId(error, requestId) : error
      } finally {
        signal.removeEventListener('abort', abort)
      }
    },
  })
  return at(undefined)
}

/** A refusal of how something was asked; of its length only where the answer counts toward it. */
function isRefusal(error: unknown, body: JsonObject): error is ModelError {
  if (!(error instanceof ModelError)) return false
  if (error.class === 'context_overflow') return body['max_tokens'] !== undefined
  return error.class === 'invalid_request'
}

/**
 * An answer from its bytes: an event stream, or one JSON body under `stream: true`. `answer` hands
 * out the pieces as they come; what its receiver throws rejects. Rejects with `ModelError`.
 */
export async function readAnswer(
  reader: BodyReader,
  context: ErrorContext,
  answer: AnswerReader,
): Promise<ModelAnswer> {
  const events = new EventReader(answer, context)
  const start = new StartOfBody()
  const parser = new SseParser((event) => {
    if (!events.done && events.read(event)) reader.progressed()
  })
  const broken = await reader.read((bytes) => {
    const data = events.begun ? bytes : start.push(bytes)
    // Blanks before a body keep the connection alive; the body itself is data.
    if (start.isBody && bytes.some((byte) => byte > SPACE)) reader.progressed()
    if (data !== undefined) parse(() => parser.push(data))
    // Once the answer has ended, silence only means that nothing follows.
    reader.endAfter(answer.quiet ? AFTERWARDS_MS : Number.POSITIVE_INFINITY)
    return events.done
  })
  if (events.done) return ended(answer)
  if (broken !== undefined && !answer.finished) throw brokenOff(broken)
  if (start.isStream) parse(() => parser.end())
  else events.readBody(start.text)
  if (events.done || answer.finished) return ended(answer)
  if (!events.begun && start.errorText !== '') events.fail(start.errorText)
  throw modelError('stream_interrupted', 'The model provider ended its answer in the middle.')
}

/**
 * Throws where the end says that something is missing: an answer that was never given is not an
 * empty one.
 */
function ended(answer: AnswerReader): ModelAnswer {
  answer.end()
  const whole = answer.finish()
  const { text, thought, calls, finish } = whole
  if (finish === 'tool_calls' && calls.length === 0)
    throw modelError('malformed_tool_call', 'The model provider announced a tool call and sent none.')
  if (!answer.finished && text === '' && thought === '' && calls.length === 0)
    throw modelError('provider_error', 'The model provider ended its answer before it had begun.')
  return whole
}

function brokenOff(cause: unknown): ModelError {
  return cause instanceof ModelError
    ? cause
    : modelError(
        'stream_interrupted',
        'The connection to the model provider broke off in the middle of its answer.',
        cause,
      )
}

function parse(push: () => void): void {
  try {
    push()
  } catch (error) {
    if (error instanceof SseTooLargeError)
      throw modelError('protocol', `The model provider's answer cannot be read: ${error.message}`, error)
    throw error
  }
}
