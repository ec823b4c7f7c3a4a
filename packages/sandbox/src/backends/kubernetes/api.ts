/** Calls of a cluster's API, in the namespace of the sandboxes. */
import type { IncomingMessage } from 'node:http'
import https from 'node:https'
import { setTimeout as sleep } from 'node:timers/promises'

import { type ClientOptions, WebSocket } from 'ws'

import type { BackendHealth } from '../../backend.ts'
import { SandboxError } from '../../errors.ts'
import type { ClusterAccess } from './access.ts'
import { answerError, connectionError, KubernetesError, lateError } from './api-error.ts'
import type { KubernetesObject, PatchOperation, Resource, Status } from './objects.ts'

/** Time limits in milliseconds, of a call with all of its waits. */
export const DEADLINE = { read: 10_000, change: 30_000, connect: 10_000 } as const

/** Selected objects of a resource. Both as in kubectl, for example `sandlot.dev/slot=abc`. */
export interface Selection {
  labels?: string
  fields?: string
}

export interface ObjectList<T> {
  items: T[]
  /** The state that the list shows, from which a watch continues. */
  resourceVersion: string
}

export type WatchEvent<T> =
  | { type: 'ADDED' | 'MODIFIED' | 'DELETED'; object: T }
  /** Nothing has changed up to the resource version of its object. */
  | { type: 'BOOKMARK'; object: KubernetesObject }

export interface RemoveOptions {
  /** Default: the object's own. */
  graceSeconds?: number
  /** Rejects with status 409 where the object of that name is another one. */
  uid?: string
}

/**
 * Every method rejects with a `SandboxError`, which is a `KubernetesError` if the API server
 * refused. An overloaded server is waited for within the deadline.
 */
export interface KubernetesApi {
  readonly access: ClusterAccess
  /** Undefined where there is none. */
  get<T extends KubernetesObject>(
    resource: Resource<T>,
    name: string,
    signal?: AbortSignal,
  ): Promise<T | undefined>
  /** The newest state of all, whatever their number. */
  list<T extends KubernetesObject>(
    resource: Resource<T>,
    selection: Selection,
    signal?: AbortSignal,
  ): Promise<ObjectList<T>>
  create<T extends KubernetesObject>(resource: Resource<T>, object: T, signal?: AbortSignal): Promise<T>
  /** Rejects with status 422 where a `test` fails, and 409 where it names an older resource version. */
  patch<T extends KubernetesObject>(
    resource: Resource<T>,
    name: string,
    operations: readonly PatchOperation[],
    signal?: AbortSignal,
  ): Promise<T>
  /** The object that is being removed now; undefined where it is gone. */
  remove<T extends KubernetesObject>(
    resource: Resource<T>,
    name: string,
    options?: RemoveOptions,
    signal?: AbortSignal,
  ): Promise<T | undefined>
  /**
   * Changes after `resourceVersion`. Ends when the server ends it, rejects when it is silent for
   * `silentMs`, or with status 410 when the server has forgotten that state.
   */
  watch<T extends KubernetesObject>(
    resource: Resource<T>,
    selection: Selection,
    from: { resourceVersion: string; timeoutSeconds: number; silentMs: number },
    signal: AbortSignal,
  ): AsyncGenerator<WatchEvent<T>, void>
  /** Any path that answers with JSON, for example `/version`. */
  read<T>(path: string, signal?: AbortSignal): Promise<T>
  /**
   * An open WebSocket with this subprotocol, of bytes only. It is paused: call `resume()` when its
   * listeners are there.
   */
  connect(path: string, protocol: string, signal?: AbortSignal): Promise<WebSocket>
  /** Path of an object, or of a collection, in the namespace of the sandboxes. */
  path<T extends KubernetesObject>(resource: Resource<T>, name?: string): string
  health(): BackendHealth
  /** Closes the kept connections. */
  close(): void
}

interface Request {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  path: string
  query?: Record<string, string | undefined>
  body?: unknown
  /** Completes “could not …”. */
  doing: string
}

/** Objects of one page of a list; larger answers delay everybody on the API server. */
const PAGE = 250
/** An object is at most 1.5 MiB in the cluster's store. */
const MOST_ANSWER_BYTES = 64 * 1024 * 1024
const MOST_LINE_CHARS = 8 * 1024 * 1024
/** A kubelet sends at most 32 KiB in one message of a stream. */
const MOST_MESSAGE_BYTES = 1024 * 1024
/** An idle connection may have gone silent without a close. */
const IDLE_MS = 15_000

/** Contacts nothing before the first call. */
export function createApi(access: ClusterAccess): KubernetesApi {
  const { server } = access
  const agent = new https.Agent({ ...access.tls, keepAlive: true, timeout: IDLE_MS })
  const prefix = server.pathname.replace(/\/$/, '')

  async function send(request: Request, refused: boolean, signal: AbortSignal): Promise<IncomingMessage> {
    const authorization = await access.authorization(refused)
    const body = request.body === undefined ? undefined : JSON.stringify(request.body)
    const query = new URLSearchParams(
      Object.entries(request.query ?? {}).filter(
        (entry): entry is [string, string] => entry[1] !== undefined,
      ),
    ).toString()
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
    const sent = https.request(
      new URL(`${prefix}${request.path}${query && `?${query}`}`, server),
      {
        agent,
        method: request.method,
        signal,
        headers: {
          accept: 'application/json',
          ...(authorization !== undefined && { authorization }),
          ...(body !== undefined && {
            'content-type': request.method === 'PATCH' ? 'application/json-patch+json' : 'application/json',
            'content-length': Buffer.byteLength(body),
          }),
        },
      },
      resolve,
    )
    sent.on('error', reject)
    sent.end(body)
    return promise
  }

  /** An answer with status 2xx, whose body is unread. */
  async function answered(request: Request, deadline: number, signal: AbortSignal): Promise<IncomingMessage> {
    let refused = false
    for (;;) {
      const answer = await send(request, refused, signal)
      const status = answer.statusCode ?? 0
      if (status >= 200 && status < 300) return answer
      const error = answerError(status, await textOf(answer), request.doing)
      const wait = waitBefore(status, answer.headers['retry-after'])
      if (status === 401 && !refused) refused = true
      else if (wait !== undefined && performance.now() + wait < deadline)
        await sleep(wait, undefined, { signal })
      else throw error
    }
  }

  async function within<T>(
    doing: string,
    ms: number,
    signal: AbortSignal | undefined,
    run: (deadline: number, signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    // Not AbortSignal.timeout: a watch goes on after its first answer.
    const late = new AbortController()
    const timer = setTimeout(() => late.abort(), ms)
    try {
      return await run(performance.now() + ms, signal ? AbortSignal.any([signal, late.signal]) : late.signal)
    } catch (error) {
      if (error instanceof SandboxError) throw error
      if (signal?.aborted)
        throw new SandboxError('cancelled', `Stopped waiting for the cluster to ${doing}.`, { cause: error })
      if (late.signal.aborted) throw lateError(server, doing, ms)
      throw connectionError(error, server, doing)
    } finally {
      clearTimeout(timer)
    }
  }

  function call<T>(request: Request, signal?: AbortSignal): Promise<T> {
    const ms = request.method === 'GET' ? DEADLINE.read : DEADLINE.change
    return within(request.doing, ms, signal, async (deadline, either) => {
      const answer = await answered(request, deadline, either)
      const text = await textOf(answer)
      return parseJson<T>(text, answer.statusCode ?? 0, request.doing)
    })
  }

  const path: KubernetesApi['path'] = ({ base, plural, namespaced }, name) =>
    `${base}${namespaced ? `/namespaces/${encodeURIComponent(access.namespace)}` : ''}/${plural}${name === undefined ? '' : `/${encodeURIComponent(name)}`}`

  return {
    access,
    path,
    get: (resource, name, signal) =>
      absentIf404(
        call(
          { method: 'GET', path: path(resource, name), doing: `read the ${resource.singular} ${name}` },
          signal,
        ),
      ),
    list: (resource, selection, signal) => listAll(call, path(resource), resource, selection, signal),
    create: (resource, object, signal) =>
      call(
        {
          method: 'POST',
          path: path(resource),
          body: object,
          doing: `create the ${resource.singular} ${object.metadata.name}`,
        },
        signal,
      ),
    patch: (resource, name, operations, signal) =>
      call(
        {
          method: 'PATCH',
          path: path(resource, name),
          body: operations,
          doing: `change the ${resource.singular} ${name}`,
        },
        signal,
      ),
    remove: (resource, name, { graceSeconds, uid } = {}, signal) =>
      removed(
        call(
          {
            method: 'DELETE',
            path: path(resource, name),
            body: {
              ...(graceSeconds !== undefined && { gracePeriodSeconds: graceSeconds }),
              ...(uid !== undefined && { preconditions: { uid } }),
            },
            doing: `remove the ${resource.singular} ${name}`,
          },
          signal,
        ),
      ),
    watch: (resource, selection, { resourceVersion, timeoutSeconds, silentMs }, signal) => {
      const doing = `watch the ${resource.singular}s`
      const query = {
        ...queryOf(selection),
        watch: 'true',
        allowWatchBookmarks: 'true',
        resourceVersion,
        timeoutSeconds: String(timeoutSeconds),
      }
      const open = (): Promise<IncomingMessage> =>
        within(doing, DEADLINE.connect, signal, (deadline, either) =>
          answered({ method: 'GET', path: path(resource), query, doing }, deadline, either),
        )
      return eventsOf(open, silentMs, (error) =>
        signal.aborted
          ? new SandboxError('cancelled', 'Stopped watching the cluster.', { cause: error })
          : connectionError(error, server, doing),
      )
    },
    read: (path, signal) => call({ method: 'GET', path, doing: `answer ${path}` }, signal),
    connect: (path, protocol, signal) => {
      const doing = `open a stream to the sandbox`
      return within(doing, DEADLINE.connect, signal, async (_, either) => {
        const url = new URL(prefix + path, server)
        const open = async (refused: boolean): Promise<WebSocket> => {
          const authorization = await access.authorization(refused)
          return openSocket(
            url,
            protocol,
            { ...access.tls, ...(authorization !== undefined && { headers: { authorization } }) },
            doing,
            either,
          )
        }
        try {
          return await open(false)
        } catch (error) {
          if (!(error instanceof KubernetesError) || error.status !== 401) throw error
          return open(true)
        }
      })
    },
    health: () => ({ state: 'closed', running: 0, inLine: 0 }),
    close: () => agent.destroy(),
  }
}

function queryOf({ labels, fields }: Selection): Record<string, string | undefined> {
  return { labelSelector: labels, fieldSelector: fields }
}

/** By pages; from the start again when the server has forgotten the state of the first page. */
async function listAll<T extends KubernetesObject>(
  call: <A>(request: Request, signal?: AbortSignal) => Promise<A>,
  path: string,
  resource: Resource<T>,
  selection: Selection,
  signal: AbortSignal | undefined,
): Promise<ObjectList<T>> {
  let items: T[] = []
  let next: string | undefined
  for (;;) {
    const query = { ...queryOf(selection), limit: String(PAGE), continue: next }
    const doing = `list the ${resource.singular}s`
    try {
      const page = await call<{
        items: T[] | null
        metadata: { resourceVersion: string; continue?: string }
      }>({ method: 'GET', path, query, doing }, signal)
      items.push(...(page.items ?? []))
      next = page.metadata.continue || undefined
      if (next === undefined) return { items, resourceVersion: page.metadata.resourceVersion }
    } catch (error) {
      if (next === undefined || !(error instanceof KubernetesError) || error.status !== 410) throw error
      items = []
      next = undefined
    }
  }
}

async function absentIf404<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer
  } catch (error) {
    if (error instanceof KubernetesError && error.status === 404) return undefined
    throw error
  }
}

/** An answer about a removed object is itself, also where that was its last moment, or a `Status`. */
async function removed<T extends KubernetesObject>(answer: Promise<T | Status>): Promise<T | undefined> {
  const object = await absentIf404(answer)
  if (object === undefined || !('metadata' in object) || object.kind === 'Status') return undefined
  const { metadata } = object as T
  const gone = metadata.deletionGracePeriodSeconds === 0 && !metadata.finalizers?.length
  return gone ? undefined : (object as T)
}

/** Milliseconds to wait before the same request is sent again; undefined where that is no use. */
function waitBefore(status: number, retryAfter: string | undefined): number | undefined {
  const seconds = Number(retryAfter)
  if (status !== 429 && !(status === 503 && retryAfter !== undefined)) return undefined
  return (Number.isFinite(seconds) && seconds > 0 ? seconds : 1) * 1_000 * (1 + Math.random() / 2)
}

async function textOf(answer: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = []
  let bytes = 0
  for await (const piece of answer as AsyncIterable<Buffer>) {
    bytes += piece.length
    if (bytes > MOST_ANSWER_BYTES) throw new Error('the answer is too large')
    pieces.push(piece)
  }
  return Buffer.concat(pieces).toString()
}

function parseJson<T>(text: string, status: number, doing: string): T {
  try {
    return JSON.parse(text) as T
  } catch (error) {
    if (error instanceof SyntaxError) throw answerError(status, text, doing)
    throw error
  }
}

/** Events of a watch, one a line. */
async function* eventsOf<T extends KubernetesObject>(
  open: () => Promise<IncomingMessage>,
  silentMs: number,
  toError: (error: unknown) => SandboxError,
): AsyncGenerator<WatchEvent<T>, void> {
  const answer = await open()
  answer.setEncoding('utf8')
  const silence = setTimeout(() => answer.destroy(new Error('nothing came from the server')), silentMs)
  try {
    let rest = ''
    for await (const piece of answer as AsyncIterable<string>) {
      silence.refresh()
      const lines = (rest + piece).split('\n')
      rest = lines.pop() ?? ''
      if (rest.length > MOST_LINE_CHARS) throw new Error('an event is too large')
      for (const line of lines) yield eventOf<T>(line)
    }
  } catch (error) {
    throw error instanceof SandboxError ? error : toError(error)
  } finally {
    clearTimeout(silence)
    answer.destroy()
  }
}

function eventOf<T>(line: string): WatchEvent<T> {
  const event = parseJson<WatchEvent<T> | { type: 'ERROR'; object: Status }>(line, 200, 'watch for changes')
  if (event.type !== 'ERROR') return event
  throw answerError(event.object.code ?? 500, JSON.stringify(event.object), 'watch for changes')
}

function openSocket(
  url: URL,
  protocol: string,
  options: ClientOptions,
  doing: string,
  signal: AbortSignal,
): Promise<WebSocket> {
  const { promise, resolve, reject } = Promise.withResolvers<WebSocket>()
  const socket = new WebSocket(url, [protocol], {
    ...options,
    perMessageDeflate: false,
    maxPayload: MOST_MESSAGE_BYTES,
    skipUTF8Validation: true,
  })
  const stop = (): void => socket.terminate()
  signal.addEventListener('abort', stop, { once: true })
  if (signal.aborted) stop()
  socket.once('open', () => {
    // A message may be there already.
    socket.pause()
    resolve(socket)
  })
  socket.on('error', reject)
  socket.once('unexpected-response', (request, answer) => {
    void textOf(answer)
      .then((text) => reject(answerError(answer.statusCode ?? 0, text, doing)), reject)
      .finally(() => request.destroy())
  })
  return promise.finally(() => {
    signal.removeEventListener('abort', stop)
    socket.off('error', reject)
  })
}
