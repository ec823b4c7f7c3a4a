/**
 * Classifies a provider's failure: its class, whether a retry may help, and a sentence for people.
 * The delay is the provider's own.
 */
import { limitIn } from './context-window.ts'
import type { ProviderFailure } from './failure.ts'
import { ModelError } from './model.ts'
import type { ModelErrorClass, SetIn } from '@sandlot/shared/chat/reasons'

/** True if a retry with the same body may help. */
const RETRYABLE: Record<ModelErrorClass, boolean> = {
  rate_limit: true,
  quota: false,
  auth: false,
  invalid_request: false,
  invalid_history: false,
  replay_refused: false,
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
  // A conflict, a model behind that failed, a request that came too early, a client that a proxy
  // thinks is gone.
  if (status === 409 || status === 424 || status === 425 || status === 499) return 'provider_error'
  return 'invalid_request'
}

/**
 * These statuses mean what they say, whatever words come with them; but relays say 401 of a key
 * whose quota is used up.
 */
const PLAIN_STATUSES = new Set([401, 402, 408, 498, 529])
/**
 * Classes that words may give to a 5xx. A proxy that sends 500 and "timeout" is still only a server
 * error …
 */
const SERVER_SIDE: readonly ModelErrorClass[] = [
  'quota',
  'rate_limit',
  'context_overflow',
  'overloaded',
  'tool_use_failed',
  'malformed_tool_call',
  // llama.cpp says 500 when the model's template refuses the messages.
  'invalid_history',
  // LiteLLM says 500 of what the provider behind it refused.
  'replay_refused',
  'content_filter',
]

function classOf({ status, code, message, waitMs }: ProviderFailure): ModelErrorClass {
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
  if (status === 404) return errorClass === 'invalid_request' || errorClass === 'replay_refused'
  // That is said of everything; the status knows better.
  if (errorClass === 'invalid_request') return classByStatus(status) === 'invalid_request'
  // Only a 5xx can mean the server; below it these words are part of some other sentence.
  if (errorClass === 'server_error' || errorClass === 'stream_interrupted') return false
  return true
}

// ── The error for people
// ────────────────────────────────────────────────────────────────────────────────

export interface ErrorContext {
  /** The model as it is configured. */
  model: string
  /** The base URL without credentials. */
  baseUrl: string
  /** Never shown; whatever looks like it is taken out of the provider's words. */
  apiKey: string
  /** Default: the configuration. */
  setIn?: SetIn | undefined
}

/** The typed error, in sentences that say what happened and what to do. */
export function toModelError(failure: ProviderFailure, context: ErrorContext): ModelError {
  const errorClass = classOf(failure)
  const fact = factOf(errorClass, failure, context)
  const advice = adviceFor(errorClass, failure, context)
  const message = [fact, `The provider is at ${context.baseUrl}.`, advice].filter(Boolean).join(' ')
  return new ModelError(errorClass, advice === undefined ? fact : message, {
    forMembers: fact,
    setIn: advice === undefined ? undefined : (context.setIn ?? 'configuration'),
    said: withoutSecrets(failure.message, context.apiKey),
    retryable: failure.retry ?? RETRYABLE[errorClass],
    waitMs: failure.waitMs,
    status: failure.status,
    limit: errorClass === 'context_overflow' ? limitIn(failure.message) : undefined,
  })
}

/** The same error, with the provider's name for the request where it has none yet. */
export function withRequestId(error: ModelError, requestId: string | undefined): ModelError {
  error.requestId ??= requestId
  return error
}

/** The address of the endpoint, by the place where it is set. */
export function addressIn(setIn: SetIn | undefined): string {
  return setIn === 'page' ? 'its address under Settings → Models' : 'OPENAI_BASE_URL'
}

/** An answer of something else than the API that was asked. `what`: the answer. */
export function foreignAnswer(
  what: string,
  setIn: SetIn | undefined,
  ending = ': it usually ends in /v1',
): ModelError {
  const fact = `The model provider answered with ${what}.`
  const advice = `Check ${addressIn(setIn)}${ending}.`
  return settingError('protocol', { fact, advice, setIn })
}

/** A failure of our own finding, with the verdict of its class. */
export function modelError(errorClass: ModelErrorClass, message: string, cause?: unknown): ModelError {
  return new ModelError(errorClass, message, { retryable: RETRYABLE[errorClass], cause })
}

/** The same, where a setting may be wrong. `advice`: for administrators. */
export function settingError(
  errorClass: ModelErrorClass,
  { fact, advice, setIn = 'configuration' }: { fact: string; advice: string; setIn: SetIn | undefined },
  cause?: unknown,
): ModelError {
  const retryable = RETRYABLE[errorClass]
  return new ModelError(errorClass, `${fact} ${advice}`, { forMembers: fact, retryable, setIn, cause })
}

/** The failure, in words for everybody. */
function factOf(errorClass: ModelErrorClass, failure: ProviderFailure, context: ErrorContext): string {
  const status = failure.status === undefined ? '' : ` (${failure.status})`
  const words = withoutAddresses(withoutSecrets(failure.message, context.apiKey), context.baseUrl)
  const said = words === '' ? '.' : `: ${words}${/[.!?…]$/.test(words) ? '' : '.'}`
  switch (errorClass) {
    case 'auth':
      return context.apiKey === ''
        ? `The model provider requires an API key${status}, and none is set.`
        : `The model provider refused the API key${status}.`
    case 'quota':
      return `The model provider’s quota is used up${status}${said}`
    case 'rate_limit':
      return `The model provider’s rate limit is reached${status}${said}`
    case 'context_overflow':
      return `The conversation is longer than the context window of ${context.model}${status}${said}`
    case 'request_too_large':
      return `The request is too large for the model provider${status}${said}`
    case 'content_filter':
      return `The model provider’s content filter refused the request${status}${said}`
    case 'invalid_history':
      return `The model provider refused the history of the conversation${status}${said}`
    case 'replay_refused':
      return `The model provider refused the reasoning of earlier answers${status}${said}`
    case 'overloaded':
      return `The model provider is overloaded${status}${said}`
    case 'stream_interrupted':
      return `The model provider broke off its answer${status}${said}`
    case 'timeout':
      return `The model provider took too long${status}${said}`
    case 'tool_use_failed':
    case 'malformed_tool_call':
      return `The model made a tool call that its provider couldn’t read${status}${said}`
    case 'invalid_request':
      if (OF_TEMPLATE.test(failure.message))
        return `The model server couldn’t build a prompt from the request${status}${said}`
      return isUnknownPath(failure)
        ? `The model provider doesn’t know the model "${context.model}" or this address${status}${said}`
        : `The model provider refused the request${status}${said}`
    default:
      return `The model provider failed${status}${said}`
  }
}

/** The next step of an administrator. Undefined: no setting is wrong. */
function adviceFor(
  errorClass: ModelErrorClass,
  failure: ProviderFailure,
  { model, apiKey, baseUrl, setIn }: ErrorContext,
): string | undefined {
  if (errorClass === 'auth') {
    const vendor = VENDORS.find(({ key }) => key.test(apiKey))
    const isForeign = vendor !== undefined && !vendor.host.test(baseUrl)
    const why = isForeign ? `It looks like a key of ${vendor.name}. ` : ''
    const key = apiKey === '' ? 'a key' : `a valid key that may use ${model}`
    return setIn === 'page'
      ? `${why}Enter ${key} under Settings → Models.`
      : `${why}Set OPENAI_API_KEY to ${key}, and restart Sandlot.`
  }
  if (errorClass !== 'invalid_request') return undefined
  if (OF_TEMPLATE.test(failure.message))
    return `Check the prompt template of "${model}", and ${addressIn(setIn)}, which may lack /v1.`
  if (!isUnknownPath(failure)) return undefined
  return setIn === 'page'
    ? 'Check its address (it usually ends in /v1) and the model’s name under Settings → Models.'
    : 'Check OPENAI_BASE_URL (it usually ends in /v1) and OPENAI_MODEL.'
}

function isUnknownPath({ status, message }: ProviderFailure): boolean {
  return status === 404 || status === 405 || UNKNOWN_PATH.test(message)
}

/** Vendors whose keys begin in a way of their own, and their hosts. The first match counts. */
const VENDORS: readonly { name: string; key: RegExp; host: RegExp }[] = [
  { name: 'Anthropic', key: /^sk-ant-/, host: /anthropic/ },
  { name: 'OpenRouter', key: /^sk-or-/, host: /openrouter/ },
  { name: 'OpenAI', key: /^sk-(?:proj|svcacct|admin)-/, host: /openai/ },
  { name: 'Groq', key: /^gsk_/, host: /groq/ },
  { name: 'xAI', key: /^xai-/, host: /x\.ai/ },
  { name: 'Google', key: /^AIza/, host: /google/ },
  { name: 'Hugging Face', key: /^hf_/, host: /huggingface|hf\./ },
  { name: 'NVIDIA', key: /^nvapi-/, host: /nvidia/ },
]

function withoutSecrets(text: string, apiKey: string): string {
  const cleaned = apiKey.length < 4 ? text : text.replaceAll(apiKey, '***')
  return cleaned.replaceAll(/\b(?:sk|pk|rk|gsk|xai|key)[-_][A-Za-z0-9*_-]{6,}/g, '***')
}

/** Addresses of a private network, without a scheme, a port or a path. */
const PRIVATE_HOSTS = [
  String.raw`(?:127|10)(?:\.\d{1,3}){3}(?!\d|\.\d)`,
  String.raw`(?:192\.168|169\.254|172\.(?:1[6-9]|2\d|3[01]))(?:\.\d{1,3}){2}(?!\d|\.\d)`,
  String.raw`\[?(?:::1|(?:f[cd][\da-f]{2}|fe80)(?::[\da-f]{0,4}){2,7}(?:%\w+)?)(?!\w)\]?`,
  String.raw`(?:localhost|(?:[\w-]+\.)+(?:local|internal|lan|svc))(?![\w-]|\.\w)`,
  // One label is a host only with a scheme or a port.
  String.raw`(?<=https?:\/\/)[\w-]+(?![\w-]|\.\w)`,
  String.raw`[a-z][a-z\d-]*(?=:\d{4,5}(?![\w.]*\w))`,
].join('|')
/** Matches them with their scheme, port and path, if any. */
const PRIVATE_ADDRESS = new RegExp(
  String.raw`(?:https?:\/\/)?(?<![\w.-])(?:${PRIVATE_HOSTS})(?::\d+)?(?:\/[^\s"'<>)]*)?`,
  'gi',
)
const HOST = /\[[\da-f:]+\]|\w(?:[\w.-]*\w)?/gi

/** Words of a provider without its own address, and without those of a private network. */
export function withoutAddresses(text: string, baseUrl: string): string {
  const { hostname } = new URL(baseUrl)
  return text
    .replaceAll(HOST, (word) => (word.toLowerCase() === hostname ? 'localhost' : word))
    .replaceAll(PRIVATE_ADDRESS, '…')
}

/** Nothing is left of what was paid for, or given for nothing. */
const OF_QUOTA =
  /insufficient_quota|exceeded_current_quota|billing_hard_limit|credit balance is too low|insufficient[ _](?:balance|credits|funds|user_quota)|payment required|out of credits|more credits|arrearage|billing_not_active|exceeded your (?:monthly|account) (?:quota|limit|budget)|budget has been exceeded|exceeded budget|free ?tier (?:of the model )?(?:has been |is )?(?:exhausted|only)|额度不足|余额不足|欠费|used all available credits|spending limit|key limit exceeded|reached your (?:specified )?(?:API usage|usage|monthly|weekly) limits?|over budget|budget_exceeded|daily free allocation|pre_consume_token_quota_failed|额度已用尽|使用上限|account has an overdue balance|accountoverdue|account_overdue|spend_limit|credit_balance|daily (?:free |request )?quota|quota_user_daily|FreeTierOnly|free quota exhausted|monthly included credits/i

// Ordered: the first that matches the code or the words wins. Throttling comes before overflow,
// because "too many tokens per minute" is no full context; quota before throttling, because OpenAI
// answers both with 429.
const CLASS_BY_WORDS: readonly [ModelErrorClass, RegExp][] = [
  ['quota', OF_QUOTA],
  [
    'rate_limit',
    /rate[ _-]?limit|call rate|limit_requests|limit_burst_rate|too many requests|throttl|tokens? per (?:minute|day|min)\b|requests? per (?:minute|day|min)\b|\b[TR]P[MD]\b|too many tokens, please wait|resource_exhausted|resource has been exhausted|concurrency limit|allocated quota exceeded|请求过于频繁|速率限制|达到速率限制|请求过多|并发数过高|too many concurrent|concurrent requests? (?:limit|exceeded)/i,
  ],
  // An id that another provider gave. Before overflow, whose code `string_above_max_length` it
  // shares.
  [
    'invalid_history',
    /(?:tool_calls\[\d+\]\.id|call_id|tool_use\.id|tool_use_id)\W{1,4}string (?:too long|should match|does not match)|tool call id was .{0,300} but must be/i,
  ],
  // Reasoning, or an item that refers to some, which only its maker takes back: of another account,
  // expired, or without the item that it belongs to.
  [
    'replay_refused',
    /invalid_encrypted_content|encrypted[_ ]content\b.{0,300}(?:(?:could not be|cannot be|failed to be) (?:verified|decrypted|parsed)|not issued)|(?:could not|cannot|failed to|unable to) (?:verify|decrypt|parse)\b.{0,80}\bencrypted[_ ]content|\bitem (?:with id )?['"]?(?:rs|msg|fc)_\w+['"]?.{0,40}(?:not found|without its required)|items are not persisted when .?store|without its required (?:following|'?reasoning'?) item|duplicate item found with id/i,
  ],
  // A path to an item or block, and a member of it that only replay sends. What tools give back and
  // images are ours, and an id that is missing is learnt.
  [
    'replay_refused',
    /(?:unknown|unsupported|unrecogni[sz]ed) (?:parameter|argument|field)s?:? ['"`]?input\[\d+\]\.(?!output\b|\S{0,80}image)|\binput(?:\[\d+\]|\.\d+)(?!\S{0,80}(?:output\b|image|\.id\b))\S{0,80}[^.]{0,80}\b(?:reasoning|encrypted_content|summary|phase|thinking|signature)\b|\b(?:reasoning|encrypted_content|thinking|signature)\b[^.]{0,40}\binput\[\d+\](?!\.(?:output|id)\b)|\bmessages(?:\.\d+|\[\d+\])\.content(?:\.\d+|\[\d+\])(?!\S{0,80}(?:tool_result|image|source|cache_control))(?:\S{0,80}\.type: field required|\S{0,80}[^.]{0,80}(?:\b(?:reasoning|encrypted_content|(?:redacted_)?thinking|signature)\b|extra inputs are not permitted))/i,
  ],
  // Thoughts of Claude, which only their maker takes back, unchanged, and some where calls are run.
  [
    'replay_refused',
    /invalid .?(?:signature|data).? in .?(?:redacted_)?thinking|thinking.{0,40}blocks in the latest assistant message cannot be modified|expected .?thinking.? or .?redacted_thinking|thinking\.signature|(?:final|last) block in an assistant message cannot be .?thinking|each thinking block must contain/i,
  ],
  [
    'context_overflow',
    /context_?length_?exceeded|max(?:imum)?[ _]model[ _]len|context_?window_?exceeded|exceed_context_size|maximum context length|max(?:imum)? context size|context (?:window|length|limit|size)[^.]{0,60}(?:exceed|overflow|full|of only|too small)|(?:exceed|overflow|greater than|larger than|longer than|beyond|outside|too large for)[^.]{0,80}context|context overflows|prompt(?: is)? too long|input(?: is)? too long|input token count[^.]*exceeds|reduce the length of the (?:messages|prompt|input)|maximum prompt length|maximum prompt limit|exceeded model token limit|range of input length should be|too many (?:input )?tokens|tokens in request more than max|max_new_tokens[^.]*must be|prompt exceeds max length|input length[^.]*exceed|string_above_max_length|request exceeds the (?:maximum )?number of tokens|maximum (?:input|allowed) (?:length|tokens)|input is longer than|上下文长度|超出最大长度|max_prompt_tokens_exceeded|must have less than \d+ tokens|prompt(?: is)? too large|prompt 超长|max_num_tokens|max input characters|max message tokens|maximum (?:supported )?sequence length|max_seq_len|conversation (?:is )?too long|tokens_limit_reached|number of (?:input |prompt )?tokens[^.]{0,60}exceed|token count[^.]{0,40}(?:exceeds|only supports)|(?:prompt|input) \(\d+ tokens\) is too long|tokens?[ _]too[ _]long|characters_too_long|input exceeds the max|(?:total )?tokens exceeds? the model's max|tokens exceed n_ctx|content_length_exceeds|max_tokens must be at least 1, got -|最大上下文|(?:tokens?|字数|长度|输入)[^。，]{0,12}(?:超过|超出|超限|过长)|输入内容过长/i,
  ],
  [
    'tool_use_failed',
    /tool_use_failed|failed to call a function|failed_generation|tool call validation failed/i,
  ],
  [
    'malformed_tool_call',
    /malformed_function_call|malformed tool call|invalid tool call arguments|failed to parse tool call|could not parse tool call|error parsing tool call/i,
  ],
  [
    'invalid_history',
    /tool_call_ids? did not have response|must be followed by tool messages|insufficient tool messages following|tool_use.{0,40}without.{0,20}tool_result|unexpected.{0,10}tool_use_id|tool_use.{0,10}ids must be unique|duplicate value for .?tool_call_id|preced(?:ing|ed|eding) (?:message with|by a message with) .?tool_calls|preceeding message with .?tool_calls|tool_call_id.{0,40}not found|same number of function calls and responses|number of function response parts|function call turn comes immediately|roles? must alternate|expected last role|unexpected role '\w+' after role|invalid_(?:request_)?message_(?:role|order)|assistant messages at the end|no user query found|message at position.{0,60}must not be empty|function\.arguments.{0,60}(?:json|invalid)|reasoning_content.{0,60}(?:must|missing|required)|thought_?signature|unexpected role 'tool'|tool id\(.{0,80}\) not found|tool call result does not follow|text content blocks must be non-empty|missing .?reasoning_content|tool_calls\[\d+\]\.id|tool call id was .{0,80} but must be|messages\W.{0,80}\b(?:reasoning(?:_content|_details|_text|_opaque)?|thinking_blocks|extra_content|provider_specific_fields)\b|\b(?:reasoning_content|extra_content|provider_specific_fields)\b.{0,40}(?:messages\[|(?:is|are) not (?:supported|permitted|allowed))|remove the reasoning_content|must have either content or tool_calls|toolresult blocks|no tool call found for function call output|last message is from the assistant|assistant message prefill|final assistant content cannot end|tool messages? must follow|must follow .?tool_calls/i,
  ],
  [
    'content_filter',
    /content_?filter|content[ _]management[ _]policy|data_inspection_failed|datainspection|content_policy|contentpolicyviolation|responsible ?ai ?policy|flagged by|requires moderation|inappropriate content|prompt was blocked|prohibited_content|safety (?:system|filter)|内容安全|敏感|content[ -]filter|flagged as|(?:input|prompt|request) was flagged|violat\w+ (?:our )?usage (?:policy|guidelines)|content exists risk|new_sensitive|guardrail|safety_check|sensitive (?:content|information)|sensitivecontent|risk_?detection|unsafe_request|prompt_unsafe|censorship/i,
  ],
  [
    'auth',
    /api key (?:has )?expired|api_key_invalid|login fail|invalid_?api_?key|incorrect api key|invalid (?:x-)?api[ -]?key|authentication_?error|unauthorized|permission_error|invalid authentication|no auth credentials|invalid_authentication|api key not valid|无效的令牌|身份验证失败|missing subscription key/i,
  ],
  [
    'request_too_large',
    /request_too_large|payload (?:is )?too large|payload size exceeds|entity too large|request body too large|body exceeded/i,
  ],
  [
    'overloaded',
    /overload|over capacity|at capacity|capacity exceeded|(?:server|system|service)(?: is)?(?: really)? busy|insufficient_system_resource|no available (?:server|instance|channel)|model is (?:currently )?loading|loading model|service_?unavailable|temporarily unavailable|try again later|负载已饱和|无可用渠道|系统繁忙|capacity temporarily exceeded|queue_exceeded|high (?:traffic|demand)/i,
  ],
  ['timeout', /timed? ?out|deadline[_ ]exceeded/i],
  [
    'stream_interrupted',
    /^aborted\b|connection (?:was )?(?:reset|closed|error|aborted)|econnreset|socket hang up|unexpected eof/i,
  ],
  [
    'server_error',
    /server_?error|internal_error|internal (?:server )?error|api_error|bad gateway|network_error|网络错误|系统错误/i,
  ],
  [
    'invalid_request',
    /invalid_request|invalid_parameter|invalidparameter|invalid_argument|bad_?request|not_?found_?error|model_not_found|model.{0,60} not exist|unsupported|unexpected endpoint/i,
  ],
]

/**
 * A model server that cannot make a prompt of any request: LM Studio with 200 or 400, llama.cpp
 * with 500.
 */
const OF_TEMPLATE = /jinja template|rendering (?:the )?prompt/i
/** LM Studio's words, under a 200, for a path that it does not have. */
const UNKNOWN_PATH = /unexpected endpoint/i

/** OpenAI's words for an empty account, and Gemini's for a throttle that passes. */
const CURRENT_QUOTA = /exceeded your current quota/i
const PASSES = /resource_exhausted|per ?(?:minute|day|model)|retry in/i
