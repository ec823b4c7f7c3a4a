/**
 * OpenTelemetry spans of prompts, and below each its requests to the model, its calls and the start
 * of its sandbox. Names, ids, counts and reasons only: no text of a person, a model or a tool.
 */
import type { Attributes, Span } from '@opentelemetry/api'
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
  /** Without an error: it was stopped. */
  broken(error?: unknown): void
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
  const { trace, ROOT_CONTEXT, SpanKind, SpanStatusCode } = api
  const tracer = trace.getTracer('sandlot', version)
  const start = (name: string, attributes: Attributes, parent?: Span, kind = SpanKind.INTERNAL): Span =>
    tracer.startSpan(
      name,
      { attributes, kind },
      parent === undefined ? ROOT_CONTEXT : trace.setSpan(ROOT_CONTEXT, parent),
    )
  const fail = (span: Span, type: string): void => {
    span.setAttribute(ATTRIBUTE.error, type)
    span.setStatus({ code: SpanStatusCode.ERROR })
  }
  /** Running spans of each user, the last begun last. */
  const running = new Map<string, Span[]>()

  return {
    prompt({ promptId, sessionId, userId }) {
      const span = start(SPAN.prompt, {
        [ATTRIBUTE.operation]: OPERATION.prompt,
        [ATTRIBUTE.agent]: 'Sandlot',
        [ATTRIBUTE.conversation]: sessionId,
        [ATTRIBUTE.promptId]: promptId,
      })
      running.set(userId, [...(running.get(userId) ?? []), span])
      const names = new Map<string, string>()
      const calls = new Map<string, Span>()
      const begin = (callId: string): Span => {
        const name = names.get(callId) ?? 'unknown'
        const attributes = {
          [ATTRIBUTE.operation]: OPERATION.tool,
          [ATTRIBUTE.tool]: name,
          [ATTRIBUTE.toolCall]: callId,
          [ATTRIBUTE.toolType]: 'function',
        }
        const call = start(SPAN.tool(name), attributes, span)
        calls.set(callId, call)
        return call
      }
      let isOver = false
      const end = (): void => {
        if (isOver) return
        isOver = true
        for (const call of calls.values()) call.end()
        span.end()
        const left = (running.get(userId) ?? []).filter((one) => one !== span)
        if (left.length > 0) running.set(userId, left)
        else running.delete(userId)
      }
      return {
        request({ name, demo }) {
          const attributes = {
            [ATTRIBUTE.operation]: OPERATION.model,
            // The same for each wire: all endpoints speak this one.
            [ATTRIBUTE.provider]: demo ? 'sandlot' : 'openai',
            [ATTRIBUTE.requestModel]: name,
            [ATTRIBUTE.conversation]: sessionId,
          }
          const request = start(SPAN.model(name), attributes, span, SpanKind.CLIENT)
          return {
            first: (ms) => void request.setAttribute(ATTRIBUTE.firstToken, ms),
            answered({ usage, finish }) {
              request.setAttributes(usageOf(usage, finish))
              request.end()
            },
            broken(error) {
              if (error !== undefined) fail(request, error instanceof ModelError ? error.class : 'other')
              request.end()
            },
          }
        },
        events(group) {
          for (const event of group) {
            if (event.sessionUpdate === 'tool_call') names.set(event.toolCallId, event.name ?? 'unknown')
            const starts = event.sessionUpdate === 'tool_call_update' && event.status === 'in_progress'
            if (starts && !calls.has(event.toolCallId)) begin(event.toolCallId)
            if (isOutcome(event)) {
              // One that was never run, like one that was denied, has no time.
              const call = calls.get(event.toolCallId) ?? begin(event.toolCallId)
              const { reason } = metaOf(event)
              if (reason !== undefined) fail(call, reason)
              call.end()
              calls.delete(event.toolCallId)
            }
            const ended = sandlotEventOf(event)
            if (ended?.type !== 'prompt_ended') continue
            span.setAttribute(ATTRIBUTE.endReason, ended.reason)
            if (shortOfItsEnd(ended.reason) === 'failed') fail(span, ended.reason)
            // Code that waits for the end of the prompt then finds its span ended.
            end()
          }
        },
        end,
      }
    },
    async sandboxStart(userId, started) {
      const span = start(SPAN.sandbox, {}, running.get(userId)?.at(-1))
      try {
        return await started
      } catch (error) {
        fail(span, error instanceof Error && 'code' in error ? String(error.code) : 'other')
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

/** Counts that the provider did not send are absent. */
function usageOf({ input, output, cached }: ModelAnswer['usage'], finish: string): Attributes {
  return {
    [ATTRIBUTE.finishReasons]: [finish],
    ...(input === undefined ? {} : { [ATTRIBUTE.inputTokens]: input }),
    ...(output === undefined ? {} : { [ATTRIBUTE.outputTokens]: output }),
    ...(cached === undefined ? {} : { [ATTRIBUTE.cachedTokens]: cached }),
  }
}
