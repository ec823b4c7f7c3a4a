/** Tests an endpoint: its list of models, and for each likely API an answer that calls a tool. */
import {
  API_NAMES,
  type EndpointTest,
  type EndpointTestResult,
  type WireName,
} from '@sandlot/shared/account/models-api'
import { messageOf } from '@sandlot/shared/base/errors'
import type { ModelErrorClass } from '@sandlot/shared/chat/reasons'
import { boundedFetch } from '@sandlot/shared/node/safe-fetch'
import { z } from 'zod'
import { parseJson } from './json.ts'
import { shownUrl } from './transport.ts'
import { ModelError } from './model.ts'
import { WIRES, createHttpModel } from './http-model.ts'
import { likelyWires, wireAfter, wireOfAddress } from './wires/choice.ts'

const LIST_MS = 15_000
const ANSWER_MS = 60_000
const MOST_LIST_BYTES = 8 * 1024 * 1024
/** Characters after which an answer that does not end is not waited for. */
const MOST_CHARS = 50_000
const MOST_NAMES = 2_000

const modelList = z.object({ data: z.array(z.object({ id: z.string().min(1).max(200) })) })

const PING = {
  name: 'ping',
  description: 'Answers pong. Call it when you are asked to.',
  parameters: { type: 'object', properties: {}, additionalProperties: false },
}

type Step = EndpointTestResult['steps'][number]
type MakeStep = (name: Step['step'], ok: boolean, message: string) => Step
type Tried = Pick<EndpointTestResult, 'wire' | 'steps'>

interface Asked {
  baseUrl: string
  apiKey: string
  model: string
  streaming?: boolean | undefined
}

/** Asks the endpoint; what fails is a step with a sentence. Ends by itself. Stops with `signal`. */
export async function testEndpoint(
  { baseUrl, model, wire, streaming }: Omit<EndpointTest, 'apiKey' | 'id'>,
  apiKey: string,
  signal: AbortSignal,
): Promise<EndpointTestResult> {
  const begun = performance.now()
  const step: MakeStep = (name, ok, message) => ({
    step: name,
    ok,
    message,
    tookMs: Math.round(performance.now() - begun),
  })
  const models = await listModels(baseUrl, apiKey, signal).catch((error: unknown) => messageOf(error))
  const listed = Array.isArray(models)
    ? step('list', true, `${models.length} found.`)
    : // Not every endpoint has a list, and none is needed.
      step('list', false, `Not listed: ${models}.`)
  const found = Array.isArray(models) ? models : undefined
  if (model === undefined) return { models: found, steps: [listed] }
  const about: Asked = { baseUrl, apiKey, model, streaming }
  const tried = await askModel(wire, about, signal, step)
  return { models: found, ...tried, steps: [listed, ...tried.steps] }
}

async function listModels(baseUrl: string, apiKey: string, signal: AbortSignal): Promise<string[]> {
  const get = boundedFetch(fetch, { maxBytes: MOST_LIST_BYTES, timeoutMs: LIST_MS })
  const address = new URL(baseUrl)
  const wire = WIRES[wireOfAddress(address)]
  const headers = {
    ...wire.otherHeaders?.({}, new Set()),
    ...(apiKey === '' ? {} : wire.headers(apiKey, address)),
  }
  // Anthropic has it next to its messages, below `/v1`, which an address may lack.
  const path = wire.name === 'anthropic' ? wire.path(address).replace(/messages$/, 'models') : '/models'
  // A redirect would take the key elsewhere.
  const response = await get(shownUrl(address) + path + address.search, {
    headers,
    redirect: 'manual',
    signal,
  })
  if (!response.ok) {
    await response.body?.cancel()
    throw new Error(`it answered with status ${response.status}`)
  }
  const json = parseJson(await response.text())
  const list = modelList.safeParse(json.ok ? json.value : undefined)
  if (!list.success) throw new Error('what it answered is none')
  return list.data.data.map(({ id }) => id).slice(0, MOST_NAMES)
}

/**
 * Failures that another API would repeat: they are about the key, the account, the network or the
 * load.
 */
const OF_ALL_APIS: readonly ModelErrorClass[] = [
  'auth',
  'quota',
  'rate_limit',
  'overloaded',
  'unreachable',
  'timeout',
]

/** Asks over one API after the other, the most likely first, until the model calls the tool. */
async function askModel(
  first: WireName | undefined,
  about: Asked,
  signal: AbortSignal,
  step: MakeStep,
): Promise<Tried> {
  const address = new URL(about.baseUrl)
  const steps: Step[] = []
  for (const wire of new Set([first ?? wireOfAddress(address), ...likelyWires(address)])) {
    const tried = await askOver(wire, about, signal, step)
    steps.push(...tried.steps)
    if (tried.called) return { wire, steps }
    const { error } = tried
    const repeats = error instanceof ModelError ? OF_ALL_APIS.includes(error.class) : error !== undefined
    if (repeats && wireAfter(error, wire, address) === undefined) break
  }
  return { steps }
}

async function askOver(
  wire: WireName,
  about: Asked,
  signal: AbortSignal,
  step: MakeStep,
): Promise<{ called: boolean; steps: Step[]; error?: unknown }> {
  const tooLong = new AbortController()
  const stop = AbortSignal.any([signal, tooLong.signal, AbortSignal.timeout(ANSWER_MS)])
  const request = {
    messages: [{ role: 'user' as const, content: 'Call the tool ping once. Say nothing else.' }],
    tools: [PING],
    maxTokens: 2_000,
  }
  const api = API_NAMES[wire]
  try {
    let chars = 0
    const { calls } = await createHttpModel({ ...about, wire }, 'page').stream(request, stop, (piece) => {
      chars += piece.type === 'call' ? 0 : piece.text.length
      if (chars > MOST_CHARS) tooLong.abort(new Error('Its answer did not end.'))
    })
    const called = calls.some(({ name }) => name === PING.name)
    const words = called
      ? 'Works.'
      : 'The model answered in words instead of calling the tool. The agent needs a model that calls tools.'
    return { called, steps: [step('stream', true, `${api} works.`), step('tool', called, words)] }
  } catch (error) {
    signal.throwIfAborted()
    const late = error instanceof Error && error.name === 'TimeoutError'
    const why = late ? `There was no whole answer within ${ANSWER_MS / 1000} s.` : messageOf(error)
    return { called: false, steps: [step('stream', false, `${api} doesn’t work. ${why}`)], error }
  }
}
