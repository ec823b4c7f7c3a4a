/** Any OpenAI-compatible endpoint, over Chat Completions, because every provider speaks it. */
import { AnswerAssembler } from './answer.ts'
import { type SilenceLimits, BodyReader, SseParser, SseTooLargeError, StartOfBody } from './sse.ts'
import { type ErrorContext, modelError, withRequestId } from './errors.ts'
import { EventReader } from './event-reader.ts'
import {
  type Model,
  type ModelAnswer,
  type ModelChunk,
  type ModelRequest,
  type Price,
  ModelError,
} from './model.ts'
import { type Profile, DEFAULT_PROFILE, profileFor } from './profiles.ts'
import { type Posted, createTransport, insideContainer, shownUrl } from './transport.ts'
import { type WireOptions, requestBody } from './wire.ts'
import { type JsonObject, isObject } from './json.ts'

export interface OpenAIModelOptions {
  /** For example `https://api.openai.com/v1`. */
  baseUrl: string
  /** May be empty for local servers. */
  apiKey: string
  model: string
  /** The name for people and the log. Default: as `model`. */
  label?: string
  /** The price of its tokens. */
  price?: Price
  /** Tokens. Default 128,000. */
  contextWindow?: number
  /** Milliseconds without any byte. Default 60,000. */
  idleTimeoutMs?: number
  /** Milliseconds without data; keep-alive comments do not count. Default 120,000. */
  progressTimeoutMs?: number
  /** True if this process runs in a container. Default: checks the marks of Docker and Podman. */
  inContainer?: boolean
  /** The deployment's corrections to our table of profiles. */
  profile?: Partial<Profile>
  /** False: one JSON answer instead of a stream; it gives the same `ModelAnswer`. Default true. */
  streaming?: boolean
}

/**
 * Milliseconds until an answer that is not streamed: it comes when all of it is there, behind
 * blanks that keep the connection.
 */
const WHOLE_ANSWER_MS = 600_000

const SPACE = 32
/** After the answer has ended, usage and `[DONE]` may follow; we do not wait longer for them. */
const AFTERWARDS_MS = 5_000

export function createOpenAIModel(options: OpenAIModelOptions): Model {
  const baseUrl = new URL(options.baseUrl)
  const apiKey = options.apiKey.trim()
  const streaming = options.streaming ?? true
  const idleMs = options.idleTimeoutMs ?? 60_000
  const progressMs = options.progressTimeoutMs ?? 120_000
  const limits: SilenceLimits = {
    idleMs,
    progressMs: streaming ? progressMs : Math.max(progressMs, WHOLE_ANSWER_MS),
  }
  const context: ErrorContext = { model: options.model, baseUrl: shownUrl(baseUrl), apiKey }
  const post = createTransport({
    baseUrl,
    path: '/chat/completions',
    apiKey,
    headTimeoutMs: streaming ? idleMs : Math.max(idleMs, WHOLE_ANSWER_MS),
    inContainer: options.inContainer ?? insideContainer(),
    context,
  })
  const profile = profileFor(baseUrl, options.model, options.profile)
  /** Parameters that this endpoint refused are not sent again. */
  let learned: Learned = { maxTokensName: profile.maxTokensName, includeUsage: true }

  const wireWith = (known: Learned, effort: string | undefined): WireOptions => ({
    model: options.model,
    streaming,
    profile,
    ...known,
    effort,
  })

  async function open(
    request: ModelRequest,
    effort: string | undefined,
    connection: AbortController,
  ): Promise<Posted> {
    const before = learned
    let sent = before
    for (;;) {
      const body = requestBody(request, wireWith(sent, effort))
      try {
        const answer = await post(body, connection)
        // Only what helped: words may name a thing for another reason, and without it this endpoint
        // may refuse all to come.
        if (sent !== before) learned = sent
        return answer
      } catch (error) {
        const refused = error instanceof ModelError && error.class === 'invalid_request'
        const next = refused ? learnFrom(error.message, sent, profile, body) : undefined
        if (next === undefined) throw error
        sent = next
      }
    }
  }

  const at = (effort: string | undefined): Model => ({
    name: options.label ?? options.model,
    price: options.price,
    demo: false,
    contextWindow: options.contextWindow ?? 128_000,
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
        const posted = await open(request, effort, connection)
        ;({ requestId } = posted)
        const body = new BodyReader(posted.read, connection, limits)
        const answer = await readAnswer(body, context, onPiece, profile)
        return { ...answer, requestDigest: posted.requestDigest }
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

/**
 * An answer from its bytes: an event stream, or one JSON body under `stream: true`. `onPiece` gets
 * the pieces as they come; its exceptions reject. Rejects with `ModelError`.
 */
export async function readAnswer(
  reader: BodyReader,
  context: ErrorContext,
  onPiece: (piece: ModelChunk) => void,
  profile: Profile = DEFAULT_PROFILE,
): Promise<ModelAnswer> {
  const answer = new AnswerAssembler(onPiece, profile)
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
function ended(answer: AnswerAssembler): ModelAnswer {
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

// ── What an endpoint refuses ────────────────────────────────────────────────────────────────────

type Learned = Pick<WireOptions, 'maxTokensName' | 'includeUsage' | 'emptyContent'>

/**
 * The next body, after `words` refused `body`. Undefined when they name nothing that can be sent
 * otherwise.
 */
function learnFrom(words: string, sent: Learned, profile: Profile, body: JsonObject): Learned | undefined {
  if (sent.includeUsage && /stream_options|include_usage/.test(words)) return { ...sent, includeUsage: false }
  const { maxTokensName } = sent
  if (maxTokensName === profile.maxTokensName && wantsOtherName(words, maxTokensName)) {
    const other = maxTokensName === 'max_tokens' ? 'max_completion_tokens' : 'max_tokens'
    return { ...sent, maxTokensName: other }
  }
  const refusesNull = /content/i.test(words) && /\bnull\b|\bnone\b|string/i.test(words)
  if (sent.emptyContent === undefined && refusesNull && sendsNull(body)) return { ...sent, emptyContent: '' }
  return undefined
}

const UNKNOWN = /unrecogni[sz]ed|unknown|unsupported|not (?:supported|permitted|allowed)|extra_forbidden/i

function wantsOtherName(words: string, name: WireOptions['maxTokensName']): boolean {
  // An endpoint that knows the newer name mentions it; one that does not must report it, for its
  // value may be wrong too.
  return /max_completion_tokens/.test(words) && (name === 'max_tokens' || UNKNOWN.test(words))
}

function sendsNull({ messages }: JsonObject): boolean {
  return (
    Array.isArray(messages) && messages.some((message) => isObject(message) && message['content'] === null)
  )
}
