/**
 * What each operation of the routes means: whose it is, what goes to the engine, what comes back.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { pipeline } from 'node:stream/promises'
import { z } from 'zod'

import type { SandboxLimits } from '@sandlot/sandbox/backend'
import { engineFacts, type EngineFacts } from '@sandlot/sandbox/backends/docker/create-template'
import { parseName } from '@sandlot/sandbox/names'
import { answerJson } from './answers.ts'
import type { Audit } from './audit.ts'
import { parseCanonical } from './canonical-json.ts'
import { checkCreate, checkVolume } from './creation.ts'
import type { Engine } from './engine.ts'
import { forcedFilters } from './filters.ts'
import { type Client, createOwnership } from './ownership.ts'
import { forbidden, Refusal } from './refusal.ts'
import type { Route } from './routes.ts'

interface OperationOptions {
  engine: Engine
  audit: Audit
  deployment: string
  /** The configured names: nothing else is looked at, and nothing else runs. Some may be absent. */
  images: readonly string[]
  runtime: string | undefined
  limits: SandboxLimits
  seccompProfile: string
  /** Undefined: not granted. */
  debugProfile?: string | undefined
  most: { containers: number; volumes: number }
}

interface Run {
  route: Route
  body: string
  response: ServerResponse
  /** Ends with the client. */
  signal: AbortSignal
}

export interface Operations {
  /** Do it and answer. @throws Refusal when nothing was answered yet. */
  run(run: Run): Promise<void>
  /** Where to attach at the engine, once it is certain that the container is ours. */
  attachPath(route: Route, signal: AbortSignal): Promise<string>
}

const image = z.object({ Id: z.string() })
const created = z.object({ Id: z.string() })
const info = z.object({
  NCPU: z.number(),
  CgroupVersion: z.string().optional(),
  SecurityOptions: z.array(z.string()).optional(),
})

export function createOperations(options: OperationOptions): Operations {
  const { engine, audit, deployment } = options
  const owned = createOwnership(engine, deployment, options.most)
  let facts: EngineFacts | undefined

  async function engineNow(client: Client): Promise<EngineFacts> {
    if (facts !== undefined) return facts
    const { json } = await must(client, '/info')
    facts = engineFacts(info.parse(json))
    return facts
  }

  async function must(client: Client, path: string): Promise<{ json: unknown }> {
    const answer = await engine.read({ method: 'GET', path: client.version + path, signal: client.signal })
    if (answer.status === 200) return answer
    throw new Refusal(
      answer.status === 404 ? 404 : 502,
      messageIn(answer.json) ?? `The Docker engine answered HTTP ${answer.status}.`,
    )
  }

  /** Of those that are there. @throws Refusal 404 when none is. */
  async function imageIdsNow(client: Client): Promise<string[]> {
    const looked = await Promise.allSettled(
      options.images.map((name) => must(client, `/images/${name}/json`)),
    )
    const ids = looked.flatMap((one) =>
      one.status === 'fulfilled'
        ? [image.parse(one.value.json).Id]
        : isAbsent(one.reason)
          ? []
          : fail(one.reason),
    )
    const [first] = looked
    if (ids.length === 0 && first?.status === 'rejected') throw first.reason
    return ids
  }

  async function create(client: Client, { route, body, response }: Run): Promise<void> {
    const [imageIds, now] = await Promise.all([imageIdsNow(client), engineNow(client)])
    const { runtime, limits, seccompProfile, debugProfile } = options
    const policy = { deployment, imageIds, runtime, limits, seccompProfile, debugProfile, engine: now }
    const name = route.query.get('name')
    const creation = checkCreate(name, body, policy)
    await owned.checkVolume(client, creation)
    await owned.withRoom(client, 'containers', async () => {
      const path = `${client.version}/containers/create?name=${name}`
      const answer = await engine.read({ method: 'POST', path, body: creation.body, signal: client.signal })
      if (answer.status === 201) audit.info({ container: created.parse(answer.json).Id, name }, 'created')
      noteFailure('POST', path, answer.status, answer.text.slice(0, ANSWER_CHARS))
      answerJson(response, answer.status, answer.text)
    })
  }

  async function createVolume(client: Client, { body, response }: Run): Promise<void> {
    const wanted = checkVolume(body, deployment)
    await owned.withRoom(client, 'volumes', async () => {
      const path = `${client.version}/volumes/create`
      const answer = await engine.read({ method: 'POST', path, body: wanted, signal: client.signal })
      if (answer.status === 201) audit.info({ volume: wanted.Name }, 'volume created')
      noteFailure('POST', path, answer.status, answer.text.slice(0, ANSWER_CHARS))
      answerJson(response, answer.status, answer.text)
    })
  }

  /** Pass a checked request on and its answer back, whatever its size. */
  async function passOn(run: Run, path: string, long = false): Promise<void> {
    const answer = await engine.ask({ method: methodOf(run.route), path, signal: run.signal, long })
    const said = failureText(answer)
    await relay(answer, run.response)
    noteFailure(methodOf(run.route), path, answer.statusCode, said())
  }

  /** What the engine could not do: its client alone knows of it otherwise, and may hide it. */
  function noteFailure(method: string, path: string, status: number | undefined, answer: string): void {
    if (status !== undefined && status >= 400 && status !== 404)
      audit.warn({ method, path: path.split('?')[0], status, answer }, 'the engine failed')
  }

  async function onContainer(client: Client, run: Run): Promise<void> {
    const { route, body } = run
    checkEcho(route, body)
    const slot = await owned.slotOf(client, route.target)
    const name = route.query.get('name')
    if (route.operation === 'rename' && parseName(deployment, name ?? '')?.slot !== slot)
      throw forbidden(`a container of the slot ${slot} may not be called ${name ?? 'nothing'}`)
    if (route.operation === 'remove') {
      owned.forget(route.target)
      audit.info({ container: route.target }, 'removed')
      return passOn(run, `${client.version}/containers/${route.target}${queryText(route)}`)
    }
    const verb = `${client.version}/containers/${route.target}/${route.operation}${queryText(route)}`
    return passOn(run, verb, route.operation === 'wait')
  }

  async function run(given: Run): Promise<void> {
    const { route, response, signal } = given
    const client: Client = { version: route.version, signal }
    const filters = (operation: 'list' | 'volume-list' | 'events'): Map<string, string> =>
      new Map([...route.query, ['filters', forcedFilters(operation, route.query.get('filters'), deployment)]])
    switch (route.operation) {
      case 'ping':
        return passOn(given, '/_ping')
      case 'version':
      case 'info':
        return passOn(given, `${route.version}/${route.operation}`)
      case 'create':
        return create(client, given)
      case 'list':
        return passOn(given, `${route.version}/containers/json${queryText({ query: filters('list') })}`)
      case 'inspect':
        return answerJson(response, 200, (await owned.inspect(client, route.target)).text)
      case 'image-inspect':
        if (!options.images.includes(route.target))
          throw forbidden(`the image ${route.target} is not a configured one`)
        return passOn(given, `${route.version}/images/${route.target}/json`)
      case 'volume-create':
        return createVolume(client, given)
      case 'volume-list':
        return passOn(given, `${route.version}/volumes${queryText({ query: filters('volume-list') })}`)
      case 'volume-inspect':
        return answerJson(response, 200, (await owned.inspectVolume(client, route.target)).text)
      case 'volume-remove':
        await owned.inspectVolume(client, route.target)
        audit.info({ volume: route.target }, 'volume removed')
        return passOn(given, `${route.version}/volumes/${route.target}`)
      case 'events':
        return passOn(given, `${route.version}/events${queryText({ query: filters('events') })}`, true)
      default:
        return onContainer(client, given)
    }
  }

  return {
    run,
    async attachPath(route, signal) {
      await owned.slotOf({ version: route.version, signal }, route.target)
      return `${route.version}/containers/${route.target}/attach${queryText(route)}`
    },
  }
}

function isAbsent(error: unknown): boolean {
  return error instanceof Refusal && error.status === 404
}

function fail(error: unknown): never {
  throw error
}

function methodOf({ operation }: Route): string {
  if (operation === 'remove' || operation === 'volume-remove') return 'DELETE'
  return ['start', 'stop', 'kill', 'pause', 'unpause', 'rename', 'wait', 'resize'].includes(operation)
    ? 'POST'
    : 'GET'
}

/** The checked parameters, written again. */
function queryText({ query }: Pick<Route, 'query'>): string {
  if (query.size === 0) return ''
  return `?${[...query].map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join('&')}`
}

/**
 * dockerode repeats the query as a body, which engines no longer read. It goes no further; anything
 * else is refused.
 */
function checkEcho(route: Route, body: string): void {
  if (body === '') return
  const value = parseCanonical(body)
  const known =
    typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.entries(value) : undefined
  if (known?.every(([name, item]) => String(item) === route.query.get(name)) !== true)
    throw forbidden(`${route.operation} has no body`)
}

function messageIn(json: unknown): string | undefined {
  return z.object({ message: z.string() }).safeParse(json).data?.message
}

/** Of what the engine says about a failure, in the log. */
const ANSWER_CHARS = 2_000

/** Gathers the beginning of an answer as it is passed on; of one that is no failure, nothing. */
function failureText(answer: IncomingMessage): () => string {
  if ((answer.statusCode ?? 0) < 400) return () => ''
  let text = ''
  answer.on('data', (chunk: Buffer) => {
    if (text.length < ANSWER_CHARS) text += chunk.toString('utf8')
  })
  return () => text.slice(0, ANSWER_CHARS)
}

/** Headers of the engine that its clients read. */
const PASSED = ['content-type', 'content-length', 'api-version', 'ostype', 'docker-experimental'] as const

async function relay(answer: IncomingMessage, response: ServerResponse): Promise<void> {
  for (const name of PASSED) {
    const value = answer.headers[name]
    if (typeof value === 'string') response.setHeader(name, value)
  }
  response.writeHead(answer.statusCode ?? 502)
  // An event stream has nothing to say for hours, but it has begun.
  response.flushHeaders()
  await pipeline(answer, response)
}
