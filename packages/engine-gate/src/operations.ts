/** Operations of the routes: each checks ownership, asks the engine and answers the client. */
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
import { type Client, Ownership } from './ownership.ts'
import { forbidden, Refusal } from './refusal.ts'
import type { Route } from './routes.ts'

interface OperationOptions {
  engine: Engine
  audit: Audit
  deployment: string
  /** Configured names: only these may be inspected or run. Some may be absent. */
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
  /** Aborts when the client disconnects. */
  signal: AbortSignal
}

const image = z.object({ Id: z.string() })
const created = z.object({ Id: z.string() })
const info = z.object({
  NCPU: z.number(),
  CgroupVersion: z.string().optional(),
  SecurityOptions: z.array(z.string()).optional(),
})

export class Operations {
  readonly #options: OperationOptions
  readonly #owned: Ownership
  #facts: EngineFacts | undefined

  constructor(options: OperationOptions) {
    this.#options = options
    this.#owned = new Ownership(options.engine, options.deployment, options.most)
  }

  /** Performs the operation and answers. @throws Refusal when nothing was answered yet. */
  async run(given: Run): Promise<void> {
    const { route, response, signal } = given
    const client: Client = { version: route.version, signal }
    switch (route.operation) {
      case 'ping':
        return this.#passOn(given, '/_ping')
      case 'version':
      case 'info':
        return this.#passOn(given, `${route.version}/${route.operation}`)
      case 'create':
        return this.#create(client, given)
      case 'list':
        return this.#passOn(given, `${route.version}/containers/json${this.#filtered(route, 'list')}`)
      case 'inspect':
        return answerJson(response, 200, (await this.#owned.inspect(client, route.target)).text)
      case 'image-inspect':
        if (!this.#options.images.includes(route.target))
          throw forbidden(`the image ${route.target} is not a configured one`)
        return this.#passOn(given, `${route.version}/images/${route.target}/json`)
      case 'volume-create':
        return this.#createVolume(client, given)
      case 'volume-list':
        return this.#passOn(given, `${route.version}/volumes${this.#filtered(route, 'volume-list')}`)
      case 'volume-inspect':
        return answerJson(response, 200, (await this.#owned.inspectVolume(client, route.target)).text)
      case 'volume-remove':
        await this.#owned.inspectVolume(client, route.target)
        this.#options.audit.info({ volume: route.target }, 'volume removed')
        return this.#passOn(given, `${route.version}/volumes/${route.target}`)
      case 'events':
        return this.#passOn(given, `${route.version}/events${this.#filtered(route, 'events')}`, true)
      default:
        return this.#onContainer(client, given)
    }
  }

  /** The engine's path of an attach, after a check that the container is ours. */
  async attachPath(route: Route, signal: AbortSignal): Promise<string> {
    await this.#owned.slotOf({ version: route.version, signal }, route.target)
    return `${route.version}/containers/${route.target}/attach${queryText(route)}`
  }

  #filtered(route: Route, operation: 'list' | 'volume-list' | 'events'): string {
    const filters = forcedFilters(operation, route.query.get('filters'), this.#options.deployment)
    return queryText({ query: new Map([...route.query, ['filters', filters]]) })
  }

  async #engineFacts(client: Client): Promise<EngineFacts> {
    this.#facts ??= engineFacts(info.parse((await this.#must(client, '/info')).json))
    return this.#facts
  }

  async #must(client: Client, path: string): Promise<{ json: unknown }> {
    const answer = await this.#options.engine.read({
      method: 'GET',
      path: client.version + path,
      signal: client.signal,
    })
    if (answer.status === 200) return answer
    throw new Refusal(
      answer.status === 404 ? 404 : 502,
      messageIn(answer.json) ?? `The Docker engine answered HTTP ${answer.status}.`,
    )
  }

  /** Ids of the configured images that exist. @throws Refusal 404 when none does. */
  async #imageIds(client: Client): Promise<string[]> {
    const inspected = await Promise.allSettled(
      this.#options.images.map((name) => this.#must(client, `/images/${name}/json`)),
    )
    const ids = inspected.flatMap((one) =>
      one.status === 'fulfilled'
        ? [image.parse(one.value.json).Id]
        : isAbsent(one.reason)
          ? []
          : fail(one.reason),
    )
    const [first] = inspected
    if (ids.length === 0 && first?.status === 'rejected') throw first.reason
    return ids
  }

  async #create(client: Client, { route, body, response }: Run): Promise<void> {
    const { audit, deployment, runtime, limits, seccompProfile, debugProfile } = this.#options
    const [imageIds, engine] = await Promise.all([this.#imageIds(client), this.#engineFacts(client)])
    const policy = { deployment, imageIds, runtime, limits, seccompProfile, debugProfile, engine }
    const name = route.query.get('name')
    const creation = checkCreate(name, body, policy)
    await this.#owned.checkVolume(client, creation)
    await this.#owned.withRoom(client, 'containers', async () => {
      const path = `${client.version}/containers/create?name=${name}`
      await this.#post(client, path, creation.body, response, (json) =>
        audit.info({ container: created.parse(json).Id, name }, 'created'),
      )
    })
  }

  async #createVolume(client: Client, { body, response }: Run): Promise<void> {
    const { audit, deployment } = this.#options
    const wanted = checkVolume(body, deployment)
    await this.#owned.withRoom(client, 'volumes', () =>
      this.#post(client, `${client.version}/volumes/create`, wanted, response, () =>
        audit.info({ volume: wanted.Name }, 'volume created'),
      ),
    )
  }

  async #post(
    client: Client,
    path: string,
    body: unknown,
    response: ServerResponse,
    onCreated: (json: unknown) => void,
  ): Promise<void> {
    const answer = await this.#options.engine.read({ method: 'POST', path, body, signal: client.signal })
    if (answer.status === 201) onCreated(answer.json)
    this.#noteFailure('POST', path, answer.status, answer.text.slice(0, ANSWER_CHARS))
    answerJson(response, answer.status, answer.text)
  }

  /** Passes a checked request on, and its answer back, whatever its size. */
  async #passOn(run: Run, path: string, long = false): Promise<void> {
    const method = methodOf(run.route)
    const answer = await this.#options.engine.ask({ method, path, signal: run.signal, long })
    const said = failureText(answer)
    await relay(answer, run.response)
    this.#noteFailure(method, path, answer.statusCode, said())
  }

  /** Logs a failure of the engine, which otherwise only the client sees, and may hide. */
  #noteFailure(method: string, path: string, status: number | undefined, answer: string): void {
    if (status !== undefined && status >= 400 && status !== 404)
      this.#options.audit.warn({ method, path: path.split('?')[0], status, answer }, 'the engine failed')
  }

  async #onContainer(client: Client, run: Run): Promise<void> {
    const { audit, deployment } = this.#options
    const { route, body } = run
    checkEcho(route, body)
    const slot = await this.#owned.slotOf(client, route.target)
    const name = route.query.get('name')
    if (route.operation === 'rename' && parseName(deployment, name ?? '')?.slot !== slot)
      throw forbidden(`a container of the slot ${slot} may not be called ${name ?? 'nothing'}`)
    if (route.operation === 'remove') {
      this.#owned.forget(route.target)
      audit.info({ container: route.target }, 'removed')
      return this.#passOn(run, `${client.version}/containers/${route.target}${queryText(route)}`)
    }
    const verb = `${client.version}/containers/${route.target}/${route.operation}${queryText(route)}`
    return this.#passOn(run, verb, route.operation === 'wait')
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

/** Serializes the checked parameters. */
function queryText({ query }: Pick<Route, 'query'>): string {
  if (query.size === 0) return ''
  return `?${[...query].map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join('&')}`
}

/**
 * dockerode repeats the query as a body, which engines no longer read. It is dropped; any other
 * body is refused.
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

/** Logged characters of an engine's failure. */
const ANSWER_CHARS = 2_000

/** Collects the beginning of a failure while it is passed on; nothing of a success. */
function failureText(answer: IncomingMessage): () => string {
  if ((answer.statusCode ?? 0) < 400) return () => ''
  let text = ''
  answer.on('data', (chunk: Buffer) => {
    if (text.length < ANSWER_CHARS) text += chunk.toString('utf8')
  })
  return () => text.slice(0, ANSWER_CHARS)
}

/** Headers of the engine that clients use. */
const PASSED = ['content-type', 'content-length', 'api-version', 'ostype', 'docker-experimental'] as const

async function relay(answer: IncomingMessage, response: ServerResponse): Promise<void> {
  for (const name of PASSED) {
    const value = answer.headers[name]
    if (typeof value === 'string') response.setHeader(name, value)
  }
  response.writeHead(answer.statusCode ?? 502)
  // An event stream may be silent for hours, but has begun.
  response.flushHeaders()
  await pipeline(answer, response)
}
