/**
 * The choice of the wire: by the address of an endpoint, and by a refusal that says that its model
 * lives on another API.
 */
import { API_NAMES, type WireName } from '@sandlot/shared/account/models-api'
import type { ModelErrorClass, SetIn } from '@sandlot/shared/chat/reasons'
import { ModelError, type ModelRequest } from '../model.ts'

const OF_OPENAI = /(?:^|\.)api\.openai\.com$|\.openai\.azure\.com$/
const OF_ANTHROPIC = /\/anthropic(?:\/v1)?\/?$/

/** The wire to begin with at this address. */
export function wireOfAddress({ hostname, pathname }: URL): WireName {
  if (hostname === 'api.anthropic.com' || OF_ANTHROPIC.test(pathname)) return 'anthropic'
  // Below a deployment's own path Azure has Chat Completions only.
  return OF_OPENAI.test(hostname) && !pathname.includes('/deployments/') ? 'responses' : 'chat'
}

/** Wires over which an endpoint at this address may answer, the most likely first. */
export function likelyWires(address: URL): readonly WireName[] {
  const first = wireOfAddress(address)
  return first === 'chat' ? ['chat', 'responses', 'anthropic'] : [first, 'chat']
}

/** Names of the APIs in the words of providers. */
const NAMED: Record<WireName, RegExp> = {
  chat: /\bchat[ _/-]?completions?\b/gi,
  responses: /\/responses\b|\bresponses[ _-]?api\b|\bapi\.responses\b/gi,
  anthropic: /\/messages\b|\bmessages[ _-]?api\b/gi,
}
const RECOMMENDED = /\b(?:only|use|using|requires?|via|through)\b/i
const EXCLUDED =
  /(?:\b(?:not|cannot)\b|n['’]t\b)(?: be| a)? ?(?:\w+ )?(?:support|availab|enabl|accessib|allow|work|used\b|compatib|implement|chat model)|missing scopes?|enabled only/i
/** A dot within a number, a name or a path ends no sentence. */
const SENTENCE_END = /[.;](?!\w)/
/** Characters next to a name that may be about it. */
const NEAR = 60

/** The words before and after each mention of this API, within its sentence. */
function mentions(said: string, api: WireName): { before: string; after: string }[] {
  return [...said.matchAll(NAMED[api])].map(({ index, 0: name }) => ({
    before: said.slice(0, index).split(SENTENCE_END).at(-1)?.slice(-NEAR) ?? '',
    after: said.slice(index + name.length, index + name.length + NEAR).split(SENTENCE_END)[0] ?? '',
  }))
}

/** True for "only supported in v1/responses", "please use /v1/responses instead". */
function isRecommended(said: string, api: WireName): boolean {
  return mentions(said, api).some(
    ({ before, after }) => RECOMMENDED.test(before) && !EXCLUDED.test(before) && !EXCLUDED.test(after),
  )
}

/** True for "not accessible via /chat/completions", "the Responses API is not enabled". */
function isExcluded(said: string, api: WireName): boolean {
  return mentions(said, api).some(({ before, after }) => EXCLUDED.test(before) || EXCLUDED.test(after))
}

/** A refusal of one member or feature, which another API may refuse as well; not a model's name. */
const OF_FEATURE =
  /(?<![\w-])(?:parameter|argument|param|field|property|tools?|tool[_ ]\w+|functions?|function[- ]calling|images?|image_\w+|vision|audio|video|files?|pdf|stream(?:ing|ed)?|n ?[>=]|choices|temperature|top_p|stop|seed|logprobs|json_\w+|json|schemas?|response_format|structured outputs?|reasoning_effort|effort|system|developer|roles?)(?![\w-])/i

const MISSING_STATUSES = new Set([404, 405, 501])
const MISSING_PATH = /unexpected endpoint|invalid url|unknown (?:request )?(?:url|path)|method not allowed/i
/** A missing thing other than the path. */
const MISSING_OTHER = /\bmodels?\b|deployment|no endpoints|provider/i

const CLASSES: readonly ModelErrorClass[] = ['invalid_request', 'server_error', 'provider_error', 'auth']
const OTHERS: Record<WireName, readonly WireName[]> = {
  chat: ['responses', 'anthropic'],
  responses: ['chat', 'anthropic'],
  anthropic: ['chat', 'responses'],
}

/** True if the path is unknown there, and not the model. */
function isMissingPath({ said = '', status }: ModelError): boolean {
  const isMissing = MISSING_PATH.test(said) || (status !== undefined && MISSING_STATUSES.has(status))
  return isMissing && !MISSING_OTHER.test(said)
}

/**
 * The wire that the refusal of a request over `asked` points to; undefined: it is about something
 * else.
 */
export function wireAfter(error: unknown, asked: WireName, address: URL): WireName | undefined {
  if (!(error instanceof ModelError) || !CLASSES.includes(error.class)) return undefined
  const { said = '' } = error
  const named = OTHERS[asked].find((name) => isRecommended(said, name))
  if (named !== undefined) return named
  if (isExcluded(said, asked) && !OF_FEATURE.test(said)) return OTHERS[asked][0]
  if (!isMissingPath(error)) return undefined
  if (asked !== 'chat') return 'chat'
  // A wrong address at an unknown host lacks the paths of all APIs.
  const suited = wireOfAddress(address)
  return suited === 'chat' ? undefined : suited
}

/** The request without what only the provider's other API understands. */
export function withoutReplay(request: ModelRequest): ModelRequest {
  const messages = request.messages.map((message) => {
    if (message.role !== 'assistant') return message
    const { role, content, calls } = message
    return { role, content, calls: calls.map(({ replay: _replay, ...call }) => call) }
  })
  return { ...request, messages }
}

/** Classes that say that an API or model is the wrong one, and not that the other one passes. */
const FINAL: readonly ModelErrorClass[] = ['invalid_request', 'auth', 'protocol']

/**
 * The error after both wires failed: that of the second alone if it may pass or be mended, that of
 * the first alone if the address has neither path.
 */
export function refusedByBoth(
  [first, second]: readonly [error: unknown, error: unknown],
  [from, to]: readonly [WireName, WireName],
  model: string,
  setIn: SetIn | undefined,
): unknown {
  if (!(first instanceof ModelError) || !(second instanceof ModelError)) return second
  if (!FINAL.includes(second.class)) return second
  if (isMissingPath(first) && isMissingPath(second)) return first
  const told = ([name, { status, said, message }]: [WireName, ModelError]): string => {
    const code = status === undefined ? '' : ` (${status})`
    return `${API_NAMES[name]}${code}: ${(said ?? message).replace(/[.\s]+$/, '')}.`
  }
  const place = setIn === 'page' ? 'under Settings → Models' : 'in the configuration'
  const fact = `The model provider refused "${model}" over both APIs that were tried.`
  return new ModelError(
    second.class,
    `${fact} ${told([from, first])} ${told([to, second])} Check the model’s name, or choose its API ${place}.`,
    {
      retryable: false,
      forMembers: fact,
      setIn: setIn ?? 'configuration',
      status: second.status,
      said: second.said,
      cause: first,
    },
  )
}
