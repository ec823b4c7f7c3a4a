/**
 * What a provider's failure means: its class, whether asking again may help, and a sentence for people. The wait is the
 * provider's own.
 */
import { CLASS_BY_WORDS, CURRENT_QUOTA, OF_QUOTA, OF_TEMPLATE, PASSES, UNKNOWN_PATH } from './error-words.ts'
import type { ProviderFailure } from './failure.ts'
import { ModelError } from './model.ts'
import type { ModelErrorClass } from '@sandlot/shared/reasons'

/** Whether asking again with the same body may help. */
const RETRYABLE: Record<ModelErrorClass, boolean> = {
  rate_limit: true,
  quota: false,
  auth: false,
  invalid_request: false,
  invalid_history: false,
  context_overflow: false,
  request_too_large: false,
  content_filter: false,
  overloaded: true,
  server_error: true,
  provider_error: true,
  timeout: true,
  stream_interrupted: true,
  protocol: false,
  malformed_tool_call: true,
  tool_use_failed: true,
  unreachable: true,
}

function classByStatus(status: number): ModelErrorClass {
  if (status === 401 || status === 403) return 'auth'
  if (status === 402) return 'quota'
  if (status === 408) return 'timeout'
  if (status === 413) return 'request_too_large'
  if (status === 429) return 'rate_limit'
  // "For legal reasons": what moderation answers.
  if (status === 451) return 'content_filter'
  // 498: Groq has no capacity left.
  if (status === 498 || status === 503 || status === 529) return 'overloaded'
  if (status >= 500) return 'server_error'
  // A conflict, a model behind that failed, a request that came too early, a client that a proxy thinks is gone.
  if (status === 409 || status === 424 || status === 425 || status === 499) return 'provider_error'
  return 'invalid_request'
}

/** These statuses mean what they say, whatever words come with them; but relays say 401 of a key whose quota is used up. */
const PLAIN_STATUSES = new Set([401, 402, 408, 498, 529])
/** What words may make of a 5xx. A proxy that says 500 and "timeout" is still only a server error … */
const SERVER_SIDE: readonly ModelErrorClass[] = [
  'quota',
  'rate_limit',
  'context_overflow',
  'overloaded',
  'tool_use_failed',
  'malformed_tool_call',
  // llama.cpp says 500 when the model's template refuses the messages.
  'invalid_history',
  'content_filter',
]

export function classOf({ status, code, message, waitMs }: ProviderFailure): ModelErrorClass {
  const words = `${code} ${message}`
  if (status !== undefined && PLAIN_STATUSES.has(status) && !(status === 401 && OF_QUOTA.test(words)))
    return classByStatus(status)
  const found = CLASS_BY_WORDS.filter(([, pattern]) => pattern.test(words)).map(([errorClass]) => errorClass)
  // One sentence for two things: an account that is empty, or a throttle that names a wait.
  if (CURRENT_QUOTA.test(words))
    found.unshift(waitMs === undefined && !PASSES.test(words) ? 'quota' : 'rate_limit')
  // Whatever status and type come with it; but what is wrong with the messages can be mended.
  const mendable = found.includes('invalid_history') || found.includes('context_overflow')
  if (OF_TEMPLATE.test(words) && !mendable) return 'invalid_request'
  if (status === undefined || status < 400) return found[0] ?? 'provider_error'
  const allowed = found.find((errorClass) => fits(errorClass, status))
  return allowed ?? classByStatus(status)
}

/** True if words may say this beside that status. */
function fits(errorClass: ModelErrorClass, status: number): boolean {
  if (status >= 500) return SERVER_SIDE.includes(errorClass)
  if (status === 429)
    return errorClass === 'quota' || errorClass === 'rate_limit' || errorClass === 'overloaded'
  if (status === 404) return errorClass === 'invalid_request'
  // That is said of everything; the status knows better.
  if (errorClass === 'invalid_request') return classByStatus(status) === 'invalid_request'
  // Only a 5xx can mean the server; below it these words are part of some other sentence.
  if (errorClass === 'server_error' || errorClass === 'stream_interrupted') return false
  return true
}

// ── The error for people ────────────────────────────────────────────────────────────────────────────────

export interface ErrorContext {
  /** The model as it is configured. */
  model: string
  /** The base URL without credentials. */
  baseUrl: string
  /** Never shown; whatever looks like it is taken out of the provider's words. */
  apiKey: string
}

/** The typed error, in a sentence that says what happened and what to do. */
export function toModelError(failure: ProviderFailure, context: ErrorContext): ModelError {
  const errorClass = classOf(failure)
  return new ModelError(errorClass, sentence(errorClass, failure, context), {
    retryable: failure.retry ?? RETRYABLE[errorClass],
    waitMs: failure.waitMs,
    status: failure.status,
  })
}

/** The same error, with the provider's name for the request where it has none yet. */
export function withRequestId(error: ModelError, requestId: string | undefined): ModelError {
  error.requestId ??= requestId
  return error
}

/** A failure of our own finding, with the verdict of its class. */
export function modelError(errorClass: ModelErrorClass, message: string, cause?: unknown): ModelError {
  return new ModelError(errorClass, message, { retryable: RETRYABLE[errorClass], cause })
}

function sentence(errorClass: ModelErrorClass, failure: ProviderFailure, context: ErrorContext): string {
  const status = failure.status === undefined ? '' : ` (${failure.status})`
  const words = withoutSecrets(failure.message, context.apiKey)
  const said = words === '' ? '.' : `: ${words}${/[.!?…]$/.test(words) ? '' : '.'}`
  const of = `of the model provider at ${context.baseUrl}`
  switch (errorClass) {
    case 'auth':
      return context.apiKey === ''
        ? `The model provider at ${context.baseUrl} wants an API key${status} and none is set. Set OPENAI_API_KEY and restart Sandlot.`
        : `The model provider at ${context.baseUrl} refused the API key${status}. Set OPENAI_API_KEY to a valid key that may use ${context.model}, and restart Sandlot.`
    case 'quota':
      return `The quota ${of} is used up${status}${said}`
    case 'rate_limit':
      return `The rate limit ${of} is reached${status}${said}`
    case 'context_overflow':
      return `The conversation is longer than the context window of ${context.model}${status}${said}`
    case 'request_too_large':
      return `The request is too large for the model provider${status}${said}`
    case 'content_filter':
      return `The model provider's content filter refused the request${status}${said}`
    case 'invalid_history':
      return `The model provider refused the history of the conversation${status}${said}`
    case 'overloaded':
      return `The model provider is overloaded${status}${said}`
    case 'stream_interrupted':
      return `The model provider broke off its answer${status}${said}`
    case 'timeout':
      return `The model provider took too long${status}${said}`
    case 'tool_use_failed':
    case 'malformed_tool_call':
      return `The model made a tool call that its provider could not read${status}${said}`
    case 'invalid_request':
      if (OF_TEMPLATE.test(failure.message))
        return `The model server cannot make a prompt of the request${status}. Check the prompt template of "${context.model}", and OPENAI_BASE_URL, which may lack /v1${said}`
      return failure.status === 404 || failure.status === 405 || UNKNOWN_PATH.test(failure.message)
        ? `The model provider at ${context.baseUrl} does not know this address or the model "${context.model}"${status}. Check OPENAI_BASE_URL (it usually ends in /v1) and OPENAI_MODEL${said}`
        : `The model provider refused the request${status}${said}`
    default:
      return `The model provider failed${status}${said}`
  }
}

function withoutSecrets(text: string, apiKey: string): string {
  const cleaned = apiKey.length < 4 ? text : text.replaceAll(apiKey, '***')
  return cleaned.replaceAll(/\b(?:sk|pk|rk|gsk|xai|key)[-_][A-Za-z0-9*_-]{6,}/g, '***')
}
