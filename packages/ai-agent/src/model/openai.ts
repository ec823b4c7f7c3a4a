/** Any OpenAI-compatible endpoint, over Chat Completions, because every provider speaks it. */
import { AnswerAssembler } from './answer.ts'
import { BodyReader } from './body-reader.ts'
import type { SilenceLimits } from './body-reader.ts'
import { modelError, toModelError } from './errors.ts'
import type { ErrorContext } from './errors.ts'
import { failureInChunk } from './failure.ts'
import { isObject, member, parseJson } from './json.ts'
import { isDone, looseJson } from './loose-json.ts'
import { ModelError } from './model.ts'
import type { Model, ModelAnswer, ModelChunk, ModelRequest, Price } from './model.ts'
import { DEFAULT_PROFILE, profileFor } from './profiles.ts'
import type { Profile } from './profiles.ts'
import { SseParser, SseTooLargeError } from './sse.ts'
import type { SseEvent } from './sse.ts'
import { createTransport } from './transport.ts'
import { insideContainer, shownUrl } from './unreachable.ts'
import { type WireOptions, requestBody } from './wire.ts'

export interface OpenAIModelOptions {
  /** For example `https://api.openai.com/v1`. */
  baseUrl: string
  /** May be empty for local servers. */
  apiKey: string
  model: string
  /** What people and the log call it. Default: as `model`. */
  label?: string
  /** What its tokens cost. */
  price?: Price
  /** Tokens. Default 128,000. */
  contextWindow?: number
  /** Milliseconds without any byte. Default 60,000. */
  idleTimeoutMs?: number
  /** Milliseconds without data; keep-alive comments do not count. Default 120,000. */
  progressTimeoutMs?: number
  /** Whether this process runs in a container. Default: looks for the marks that Docker and Podman leave. */
  inContainer?: boolean
  /** What the deployment knows better than our table of profiles. */
  profile?: Partial<Profile>
  /** False: one JSON answer instead of a stream; it gives the same `ModelAnswer`. Default true. */
  streaming?: boolean
}

/** Milliseconds until the head of an answer that is not streamed: it comes when the whole answer is there. */
const WHOLE_ANSWER_MS = 600_000

/** After the answer has ended, usage and `[DONE]` may follow; we do not wait longer for them. */
const AFTERWARDS_MS = 5_000
/** Longest answer that came as one JSON body, in characters. */
const MAX_JSON_CHARS = 64 * 1024 * 1024

export function createOpenAIModel(options: OpenAIModelOptions): Model {
  const baseUrl = new URL(options.baseUrl)
  const apiKey = options.apiKey.trim()
  const streaming = options.streaming ?? true
  const idleMs = options.idleTimeoutMs ?? 60_000
  const limits: SilenceLimits = { idleMs, progressMs: options.progressTimeoutMs ?? 120_000 }
  const context: ErrorContext = { model: options.model, baseUrl: shownUrl(baseUrl), apiKey }
  const post = createTransport({
    baseUrl,
    apiKey,
    headTimeoutMs: streaming ? idleMs : Math.max(idleMs, WHOLE_ANSWER_MS),
    inContainer: options.inContainer ?? insideContainer(),
    context,
  })
  const profile = profileFor(baseUrl, options.model, options.profile)
  let { maxTokensName } = profile
  let includeUsage = true

  const currentWire = (effort: string | undefined): WireOptions => ({
    model: options.model,
    streaming,
    profile,
    maxTokensName,
    includeUsage,
    ...(effort === undefined ? {} : { effort }),
  })

  async function open(
    request: ModelRequest,
    effort: string | undefined,
    signal: AbortSignal,
  ): Promise<ReadableStream<Uint8Array>> {
    for (;;) {
      const wire = currentWire(effort)
      try {
        return await post(requestBody(request, wire), signal)
      } catch (error) {
        const words = error instanceof ModelError && error.class === 'invalid_request' ? error.message : ''
        // What this endpoint does not know is left out from now on; each of these can happen once.
        if (wire.includeUsage && /stream_options|include_usage/.test(words)) includeUsage = false
        else if (wire.maxTokensName === 'max_tokens' && /max_completion_tokens/.test(words))
          maxTokensName = 'max_completion_tokens'
        else throw error
      }
    }
  }

  const at = (effort: string | undefined): Model => ({
    name: options.label ?? options.model,
    ...(options.price === undefined ? {} : { price: options.price }),
    demo: false,
    contextWindow: options.contextWindow ?? 128_000,
    thoughtLevels: profile.thoughtLevels,
    atLevel: at,
    wire: () => currentWire(effort),
    async *stream(request, signal) {
      signal.throwIfAborted()
      const connection = new AbortController()
      const abort = (): void => connection.abort(signal.reason)
      signal.addEventListener('abort', abort, { once: true })
      try {
        const body = await open(request, effort, connection.signal)
        return yield* readAnswer(new BodyReader(body, limits), context, profile)
      } catch (error) {
        // Whatever an abort makes of the request, it is the abort.
        signal.throwIfAborted()
        throw error
      } finally {
        signal.removeEventListener('abort', abort)
        // Also when the consumer stops early: the provider must not go on at our cost.
        connection.abort()
      }
    },
  })
  return at(undefined)
}

/** An answer from its bytes: an event stream, or one JSON body under `stream: true`. */
export async function* readAnswer(
  reader: BodyReader,
  context: ErrorContext,
  profile: Profile = DEFAULT_PROFILE,
): AsyncGenerator<ModelChunk, ModelAnswer> {
  const answer = new AnswerAssembler(profile)
  const events = new EventReader(answer, context)
  const start = new StartOfBody()
  const parser = new SseParser()
  try {
    for (;;) {
      const bytes = await nextBytes(reader, answer)
      if (bytes === undefined) break
      const data = start.push(bytes)
      if (data === undefined) continue
      for (const event of parse(parser, data)) {
        if (events.isData(event)) reader.progressed()
        yield* events.read(event)
        if (events.done) return yield* ended(answer)
      }
    }
    if (start.isStream) for (const event of parser.end()) yield* events.read(event)
    else yield* readJsonBody(start.text, events)
    if (events.done || answer.finished) return yield* ended(answer)
    throw modelError('stream_interrupted', 'The model provider ended its answer in the middle.')
  } finally {
    await reader.cancel()
  }
}

function* ended(answer: AnswerAssembler): Generator<ModelChunk, ModelAnswer> {
  yield* answer.end()
  return answer.finish()
}

/** Once the answer has ended, silence or a broken connection only mean that nothing follows. */
async function nextBytes(reader: BodyReader, answer: AnswerAssembler): Promise<Uint8Array | undefined> {
  try {
    const bytes = await reader.read(answer.quiet ? AFTERWARDS_MS : undefined)
    return bytes === 'late' ? undefined : bytes
  } catch (error) {
    if (answer.finished) return undefined
    if (error instanceof ModelError) throw error
    throw modelError(
      'stream_interrupted',
      'The connection to the model provider broke off in the middle of its answer.',
      error,
    )
  }
}

function parse(parser: SseParser, bytes: Uint8Array): SseEvent[] {
  try {
    return parser.push(bytes)
  } catch (error) {
    if (error instanceof SseTooLargeError)
      throw modelError('protocol', `The model provider's answer cannot be read: ${error.message}`, error)
    throw error
  }
}

/** Tells an event stream from a JSON or HTML body by its first character; content types lie. */
class StartOfBody {
  readonly #decoder = new TextDecoder()
  #kind: 'unknown' | 'stream' | 'body' = 'unknown'
  #held: Uint8Array[] = []
  #text = ''

  get isStream(): boolean {
    return this.#kind === 'stream'
  }

  /** Everything, unless it is a stream. */
  get text(): string {
    return this.#text
  }

  /** What belongs to the event stream, if it is one. */
  push(bytes: Uint8Array): Uint8Array | undefined {
    if (this.#kind === 'stream') return bytes
    this.#text += this.#decoder.decode(bytes, { stream: true })
    if (this.#text.length > MAX_JSON_CHARS)
      throw modelError('protocol', 'The model provider sent a body without end.')
    if (this.#kind === 'body') return undefined
    this.#held.push(bytes)
    const first = this.#text.trimStart().charAt(0)
    if (first === '') return undefined
    this.#kind = first === '{' || first === '[' || first === '<' ? 'body' : 'stream'
    const held = Buffer.concat(this.#held)
    this.#held = []
    return this.#kind === 'stream' ? held : undefined
  }
}

function* readJsonBody(text: string, events: EventReader): Generator<ModelChunk> {
  const trimmed = text.trim()
  if (trimmed.startsWith('<')) {
    throw modelError(
      'protocol',
      'The model provider answered with a web page. Check OPENAI_BASE_URL: it usually ends in /v1.',
    )
  }
  if (trimmed === '') return
  const parsed = parseJson(trimmed)
  if (!parsed.ok) {
    // One JSON object a line, or a body that was cut.
    yield* events.read({ event: '', data: trimmed, complete: false })
    return
  }
  yield* events.readChunk(parsed.value, false)
  const whole: unknown = Array.isArray(parsed.value) ? parsed.value[0] : parsed.value
  const choices = member(whole, 'choices')
  if (choices === null || (Array.isArray(choices) && choices.length === 0)) {
    throw modelError('provider_error', 'The model provider sent a completion without an answer.')
  }
  if (!Array.isArray(choices)) {
    throw modelError(
      'protocol',
      'The model provider answered with JSON that is no chat completion. Check OPENAI_BASE_URL: it usually ends in /v1.',
    )
  }
  events.done = true
}

/** Events → the answer. */
class EventReader {
  readonly #answer: AnswerAssembler
  readonly #context: ErrorContext
  /** `[DONE]` has come, or a whole JSON body. */
  done = false

  constructor(answer: AnswerAssembler, context: ErrorContext) {
    this.#answer = answer
    this.#context = context
  }

  /** True for what counts as progress: not for pings, whether as an event or in words. */
  isData({ event, data }: SseEvent): boolean {
    return event !== 'ping' && data.length > 2 && /^\s*[{[]/.test(data)
  }

  *read({ event, data, complete }: SseEvent): Generator<ModelChunk> {
    const inErrorEvent = event === 'error'
    const parsed = parseJson(data)
    if (isDone(data)) {
      this.done = true
    } else if (parsed.ok) {
      yield* this.readChunk(parsed.value, inErrorEvent)
    } else if (/^\s*[{[]/.test(data) && !/^\s*\[ERROR\]/i.test(data)) {
      yield* this.#readLoosely(data, inErrorEvent, complete)
    } else if (inErrorEvent || (!this.#answer.finished && IN_WORDS.test(data))) {
      this.#fail(data)
    }
    // Anything else is a sign of life ("ping"), or a word behind an answer that is whole.
  }

  *#readLoosely(data: string, inErrorEvent: boolean, complete: boolean): Generator<ModelChunk> {
    const loose = looseJson(data)
    for (const value of loose?.values ?? []) yield* this.readChunk(value, inErrorEvent)
    if (loose?.done === true) this.done = true
    // The cut end of a stream is for the caller, who finds it unfinished.
    if (loose !== undefined && !(loose.cut && complete)) return
    // An error may stand on a line of its own behind an event that it cut off.
    for (const line of data.split('\n')) {
      const value = parseJson(line)
      const failure = value.ok ? failureInChunk(value.value, false) : undefined
      if (failure !== undefined) throw toModelError(failure, this.#context)
    }
    if (inErrorEvent) this.#fail(data)
    if (!complete) return
    throw new ModelError('protocol', 'The model provider sent an event that is not JSON.', {
      retryable: true,
    })
  }

  *readChunk(chunk: unknown, inErrorEvent: boolean): Generator<ModelChunk> {
    const failure = failureInChunk(chunk, inErrorEvent)
    if (failure !== undefined) throw toModelError(failure, this.#context)
    if (typeof chunk === 'string' && inErrorEvent) this.#fail(chunk)
    if (Array.isArray(chunk)) for (const each of chunk) yield* this.readChunk(each, inErrorEvent)
    if (isObject(chunk)) yield* this.#answer.push(chunk)
  }

  #fail(words: string): never {
    throw toModelError({ status: undefined, code: '', message: words, waitMs: undefined }, this.#context)
  }
}

/** A failure that some proxies write into a stream as it is; text never comes like this. */
const IN_WORDS =
  /\berror\b|exception|\bfail(?:ed|ure)\b|unavailable|overloaded|timed? ?out|too many requests|bad gateway/i
