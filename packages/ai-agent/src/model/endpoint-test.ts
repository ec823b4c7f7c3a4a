/** Tests an endpoint: its list of models, and one streamed answer that has to call a tool. */
import { messageOf } from '@sandlot/shared/base/errors'
import { boundedFetch } from '@sandlot/shared/node/safe-fetch'
import type { EndpointTest, EndpointTestResult } from '@sandlot/shared/account/models-api'
import { z } from 'zod'
import { parseJson } from './json.ts'
import { ModelError } from './model.ts'
import { createHttpModel } from './http-model.ts'

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

/** Asks the endpoint; what fails is a step with a sentence. Ends by itself. Stops with `signal`. */
export async function testEndpoint(
  { baseUrl, model }: Pick<EndpointTest, 'baseUrl' | 'model'>,
  apiKey: string,
  signal: AbortSignal,
): Promise<EndpointTestResult> {
  const begun = performance.now()
  const step = (name: Step['step'], ok: boolean, message: string): Step => ({
    step: name,
    ok,
    message,
    tookMs: Math.round(performance.now() - begun),
  })
  const models = await listModels(baseUrl, apiKey, signal).catch((error: unknown) => messageOf(error))
  const listed = Array.isArray(models)
    ? step('list', true, `It has ${models.length === 1 ? 'one model' : `${models.length} models`}.`)
    : // Not every endpoint has a list, and none is needed.
      step('list', false, `It gave no list of models: ${models}.`)
  const found = Array.isArray(models) ? models : undefined
  if (model === undefined) return { models: found, steps: [listed] }
  return { models: found, steps: [listed, ...(await askModel({ baseUrl, apiKey, model }, signal, step))] }
}

async function listModels(baseUrl: string, apiKey: string, signal: AbortSignal): Promise<string[]> {
  const get = boundedFetch(fetch, { maxBytes: MOST_LIST_BYTES, timeoutMs: LIST_MS })
  const headers = apiKey === '' ? undefined : { authorization: `Bearer ${apiKey}` }
  // A redirect would take the key elsewhere.
  const response = await get(`${baseUrl.replace(/\/+$/, '')}/models`, { headers, redirect: 'manual', signal })
  if (!response.ok) {
    await response.body?.cancel()
    throw new Error(`it answered with status ${response.status}`)
  }
  const json = parseJson(await response.text())
  const list = modelList.safeParse(json.ok ? json.value : undefined)
  if (!list.success) throw new Error('what it answered is none')
  return list.data.data.map(({ id }) => id).slice(0, MOST_NAMES)
}

async function askModel(
  about: { baseUrl: string; apiKey: string; model: string },
  signal: AbortSignal,
  step: (name: Step['step'], ok: boolean, message: string) => Step,
): Promise<Step[]> {
  const tooLong = new AbortController()
  const stop = AbortSignal.any([signal, tooLong.signal, AbortSignal.timeout(ANSWER_MS)])
  const request = {
    messages: [{ role: 'user' as const, content: 'Call the tool ping once. Say nothing else.' }],
    tools: [PING],
    maxTokens: 2_000,
  }
  try {
    let chars = 0
    const { calls } = await createHttpModel(about).stream(request, stop, (piece) => {
      chars += piece.type === 'call' ? 0 : piece.text.length
      if (chars > MOST_CHARS) tooLong.abort(new Error('Its answer did not end.'))
    })
    const called = calls.some(({ name }) => name === PING.name)
    const words = called
      ? 'It called a tool.'
      : 'It answered in words and did not call the tool that it was asked to call. An agent needs a model that calls tools.'
    return [step('stream', true, 'It streamed an answer.'), step('tool', called, words)]
  } catch (error) {
    signal.throwIfAborted()
    const late = error instanceof Error && error.name === 'TimeoutError'
    const message = error instanceof ModelError ? error.message : messageOf(error)
    return [step('stream', false, late ? `There was no whole answer within ${ANSWER_MS / 1000} s.` : message)]
  }
}
