/**
 * OpenTelemetry spans of prompts, and below each its requests to the model, its calls and the start
 * of its sandbox. Names, ids, counts and reasons only: no text of a person, a model or a tool.
 */
import type * as OpenTelemetry from '@opentelemetry/api'
import type { Attributes, Span, SpanKind, Tracer } from '@opentelemetry/api'
import { orTimeout } from '@sandlot/shared/async/or-timeout'
import { type EventGroup, isOutcome, metaOf, sandlotEventOf } from '@sandlot/shared/chat/events'
import { shortOfItsEnd } from '@sandlot/shared/chat/reasons'
import { type ModelAnswer, ModelError } from '../model/model.ts'

/**
 * Names of the OpenTelemetry conventions for generative AI, which are still “Development”: what
 * changes there changes here alone. `sandlot.*`: our own.
 */
const SPAN = {
  prompt: 'invoke_agent Sandlot',
  model: (name: string) => `chat ${name}`,
  tool: (name: string) => `execute_tool ${name}`,
  sandbox: 'start sandbox',
} as const

const OPERATION = { prompt: 'invoke_agent', model: 'chat', tool: 'execute_tool' } as const

const ATTRIBUTE = {
  operation: 'gen_ai.operation.name',
  provider: 'gen_ai.provider.name',
  agent: 'gen_ai.agent.name',
  /** The chat. */
  conversation: 'gen_ai.conversation.id',
  requestModel: 'gen_ai.request.model',
  finishReasons: 'gen_ai.response.finish_reasons',
  inputTokens: 'gen_ai.usage.input_tokens',
  outputTokens: 'gen_ai.usage.output_tokens',
  cachedTokens: 'gen_ai.usage.cache_read.input_tokens',
  tool: 'gen_ai.tool.name',
  toolCall: 'gen_ai.tool.call.id',
  toolType: 'gen_ai.tool.type',
  /** The kind of a failure: a word of a closed list. */
  error: 'error.type',
  promptId: 'sandlot.prompt.id',
  endReason: 'sandlot.end.reason',
  /** Milliseconds from a request to the first piece of its answer. */
  firstToken: 'sandlot.first_token_ms',
} as const

/** The longest wait at the end for the last spans to be accepted. */
const FLUSH_MS = 5_000

export interface Tracing {
  prompt(about: { promptId: string; sessionId: string; userId: string }): PromptTrace
  /** The start of this user's sandbox, below the prompt of theirs that began last. */
  sandboxStart<T>(userId: string, started: Promise<T>): Promise<T>
  /** Sends what is left, as far as it is taken in time. Never rejects. */
  close(): Promise<void>
}

export interface PromptTrace {
  request(model: { name: string; demo: boolean }): RequestTrace
  /** Events of the prompt. */
  events(group: EventGroup): void
  /** Ends what has not ended. Idempotent. */
  end(): void
}

/** One request to the model. */
interface RequestTrace {
  /** The first piece of the answer came after so many milliseconds. */
  first(ms: number): void
  answered(answer: ModelAnswer): void
  broken(error: unknown): void
}

/** Loads the SDK, which costs about 40 MB: call only where an endpoint is set. */
export async function openTracing({
  endpoint,
  serviceName,
  version,
}: {
  /** Without `/v1/traces`. */
  endpoint: string
  serviceName: string
  version: string
}): Promise<Tracing> {
  const [{ NodeSDK }, { OTLPTraceExporter }, api] = await Promise.all([
    import('@opentelemetry/sdk-node'),
    import('@opentelemetry/exporter-trace-otlp-proto'),
    import('@opentelemetry/api'),
  ])
  const sdk = new NodeSDK({
    serviceName,
    // The detectors would reveal the command line of this process.
    autoDetectResources: false,
    instrumentations: [],
    traceExporter: new OTLPTraceExporter({ url: `${endpoint.replace(/\/+$/, '')}/v1/traces` }),
  })
  sdk.start()
  const spans = new Spans(api, version)
  return {
    prompt: (about) => new TracedPrompt(spans, about),
    async sandboxStart(userId, started) {
      const span = spans.start(SPAN.sandbox, {}, spans.running.get(userId)?.at(-1))
      try {
        return await started
      } catch (error) {
        spans.fail(span, error instanceof Error && 'code' in error ? String(error.code) : 'other')
        throw error
      } finally {
        span.end()
      }
    },
    async close() {
      await orTimeout(
        sdk.shutdown().catch(() => undefined),
        FLUSH_MS,
        undefined,
      )
    },
  }
}

class Spans {
  readonly #api: typeof OpenTelemetry
  readonly #tracer: Tracer
  /** Running spans of each user, the last begun last. */
  readonly running = new Map<string, Span[]>()

  constructor(api: typeof OpenTelemetry, version: string) {
    this.#api = api
    this.#tracer = api.trace.getTracer('sandlot', version)
  }

  start(name: string, attributes: Attributes, parent?: Span, kind?: SpanKind): Span {
    const { trace, ROOT_CONTEXT, SpanKind } = this.#api
    return this.#tracer.startSpan(
      name,
      { attributes, kind: kind ?? SpanKind.INTERNAL },
      parent === undefined ? ROOT_CONTEXT : trace.setSpan(ROOT_CONTEXT, parent),
    )
  }

  /** A span of a request to another system. */
  startClient(name: string, attributes: Attributes, parent: Span): Span {
    return this.start(name, attributes, parent, this.#api.SpanKind.CLIENT)
  }

  fail(span: Span, type: string): void {
    span.setAttribute(ATTRIBUTE.error, type)
    span.setStatus({ code: this.#api.SpanStatusCode.ERROR })
  }
}

class TracedPrompt implements PromptTrace {
  readonly #spans: Spans
  readonly #sessionId: string
  readonly #userId: string
  readonly #span: Span
  readonly #names = new Map<string, string>()
  readonly #calls = new Map<string, Span>()
  #isOver = false

  constructor(spans: Spans, { promptId, sessionId, userId }: Parameters<Tracing['prompt']>[0]) {
    this.#spans = spans
    this.#sessionId = sessionId
    this.#userId = userId
    this.#span = spans.start(SPAN.prompt, {
      [ATTRIBUTE.operation]: OPERATION.prompt,
      [ATTRIBUTE.agent]: 'Sandlot',
      [ATTRIBUTE.conversation]: sessionId,
      [ATTRIBUTE.promptId]: promptId,
    })
    spans.running.set(userId, [...(spans.running.get(userId) ?? []), this.#span])
  }

  request({ name, demo }: { name: string; demo: boolean }): RequestTrace {
    const attributes = {
      [ATTRIBUTE.operation]: OPERATION.model,
      // The same for each wire: all endpoints speak this one.
      [ATTRIBUTE.provider]: demo ? 'sandlot' : 'openai',
      [ATTRIBUTE.requestModel]: name,
      [ATTRIBUTE.conversation]: this.#sessionId,
    }
    const spans = this.#spans
    const request = spans.startClient(SPAN.model(name), attributes, this.#span)
    return {
      first: (ms) => void request.setAttribute(ATTRIBUTE.firstToken, ms),
      answered({ usage, finish }) {
        request.setAttributes(usageOf(usage, finish))
        request.end()
      },
      broken(error) {
        spans.fail(request, error instanceof ModelError ? error.class : 'other')
        request.end()
      },
    }
  }

  events(group: EventGroup): void {
    for (const event of group) {
      if (event.sessionUpdate === 'tool_call') this.#names.set(event.toolCallId, event.name ?? 'unknown')
      const starts = event.sessionUpdate === 'tool_call_update' && event.status === 'in_progress'
      if (starts && !this.#calls.has(event.toolCallId)) this.#begin(event.toolCallId)
      if (isOutcome(event)) {
        // One that was never run, like one that was denied, has no time.
        const call = this.#calls.get(event.toolCallId) ?? this.#begin(event.toolCallId)
        const { reason } = metaOf(event)
        if (reason !== undefined) this.#spans.fail(call, reason)
        call.end()
        this.#calls.delete(event.toolCallId)
      }
      const ended = sandlotEventOf(event)
      if (ended?.type !== 'prompt_ended') continue
      this.#span.setAttribute(ATTRIBUTE.endReason, ended.reason)
      if (shortOfItsEnd(ended.reason) === 'failed') this.#spans.fail(this.#span, ended.reason)
      // Code that waits for the end of the prompt then finds its span ended.
      this.end()
    }
  }

  end(): void {
    if (this.#isOver) return
    this.#isOver = true
    for (const call of this.#calls.values()) call.end()
    this.#span.end()
    const { running } = this.#spans
    const left = (running.get(this.#userId) ?? []).filter((one) => one !== this.#span)
    if (left.length > 0) running.set(this.#userId, left)
    else running.delete(this.#userId)
  }

  #begin(callId: string): Span {
    const name = this.#names.get(callId) ?? 'unknown'
    const attributes = {
      [ATTRIBUTE.operation]: OPERATION.tool,
      [ATTRIBUTE.tool]: name,
      [ATTRIBUTE.toolCall]: callId,
      [ATTRIBUTE.toolType]: 'function',
    }
    const call = this.#spans.start(SPAN.tool(name), attributes, this.#span)
    this.#calls.set(callId, call)
    return call
  }
}

/** Counts that the provider did not send are absent. */
function usageOf({ input, output, cached }: ModelAnswer['usage'], finish: string): Attributes {
  return {
    [ATTRIBUTE.finishReasons]: [finish],
    ...(input === undefined ? {} : { [ATTRIBUTE.inputTokens]: input }),
    ...(output === undefined ? {} : { [ATTRIBUTE.outputTokens]: output }),
    ...(cached === undefined ? {} : { [ATTRIBUTE.cachedTokens]: cached }),
  }
}
