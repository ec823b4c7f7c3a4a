/** Calls of a cluster's API, in the namespace of the sandboxes. */
import type { WebSocket } from 'ws'

import type { BackendHealth } from '../../backend.ts'
import type { ClusterAccess } from './access.ts'
import { answerError, KubernetesError } from './api-error.ts'
import type { KubernetesObject, PatchOperation, Resource, Status } from './objects.ts'
import { Transport } from './transport.ts'

/** Selected objects of a resource. Both as in kubectl, for example `sandlot.dev/slot=abc`. */
export interface Selection {
  labels?: string
  fields?: string
}

interface ObjectList<T> {
  items: T[]
  /** The state that the list shows, from which a watch continues. */
  resourceVersion: string
}

export type WatchEvent<T> =
  | { type: 'ADDED' | 'MODIFIED' | 'DELETED'; object: T }
  /** Nothing has changed up to the resource version of its object. */
  | { type: 'BOOKMARK'; object: KubernetesObject }

interface WatchStart {
  resourceVersion: string
  /** The server ends it after that. */
  timeoutSeconds: number
  silentMs: number
}

export interface RemoveOptions {
  /** Default: the object's own. */
  graceSeconds?: number
  /** Rejects with an error whose `outrun` is true where the object of that name is another one. */
  uid?: string
  /** The same where it has changed since. */
  resourceVersion?: string
}

/**
 * Every method rejects with a `SandboxError`, which is a `KubernetesError` if the API server
 * refused. Each has its own deadline, within which an overloaded server is waited for.
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
  /** `dryRun`: admitted and answered, and not made. */
  create<T extends KubernetesObject>(
    resource: Resource<T>,
    object: T,
    signal?: AbortSignal,
    dryRun?: boolean,
  ): Promise<T>
  /** Rejects with an error whose `outrun` is true where a `test` fails. */
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
    start: WatchStart,
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
/** Objects of one page of a list; larger answers delay everybody on the API server. */
const PAGE = 250

/** Contacts nothing before the first call. */
export function createApi(access: ClusterAccess): KubernetesApi {
  const transport = new Transport(access)
  const namespace = `/namespaces/${encodeURIComponent(access.namespace)}`
  const path: KubernetesApi['path'] = ({ base, plural, namespaced }, name) =>
    `${base}${namespaced ? namespace : ''}/${plural}${name === undefined ? '' : `/${encodeURIComponent(name)}`}`

  // The server's answer is believed to be what its API promises.
  const call = <T>(...request: Parameters<Transport['call']>): Promise<T> =>
    transport.call(...request) as Promise<T>
  return {
    access,
    path,
    get(resource, name, signal) {
      const doing = `read the ${resource.singular} ${name}`
      return absentIf404(call({ method: 'GET', path: path(resource, name), doing }, signal))
    },
    list: (resource, selection, signal) => listAll(transport, path(resource), resource, selection, signal),
    create(resource, object, signal, dryRun = false) {
      const doing = `create the ${resource.singular} ${object.metadata.name}`
      const query = dryRun ? { dryRun: 'All' } : {}
      return call({ method: 'POST', path: path(resource), query, body: object, doing }, signal)
    },
    patch(resource, name, operations, signal) {
      const doing = `change the ${resource.singular} ${name}`
      return call({ method: 'PATCH', path: path(resource, name), body: operations, doing }, signal)
    },
    remove(resource, name, { graceSeconds, ...preconditions } = {}, signal) {
      const doing = `remove the ${resource.singular} ${name}`
      const body = {
        gracePeriodSeconds: graceSeconds,
        preconditions,
      }
      return removed(call({ method: 'DELETE', path: path(resource, name), body, doing }, signal))
    },
    async *watch<T extends KubernetesObject>(
      resource: Resource<T>,
      selection: Selection,
      { resourceVersion, timeoutSeconds, silentMs }: WatchStart,
      signal: AbortSignal,
    ) {
      const doing = `watch the ${resource.singular}s`
      const query = {
        ...queryOf(selection),
        watch: 'true',
        allowWatchBookmarks: 'true',
        resourceVersion,
        timeoutSeconds: String(timeoutSeconds),
      }
      const request = { method: 'GET', path: path(resource), query, doing } as const
      for await (const line of transport.lines(request, silentMs, signal)) {
        const event = line as WatchEvent<T> | { type: 'ERROR'; object: Status }
        if (event.type === 'ERROR')
          throw answerError(event.object.code ?? 500, JSON.stringify(event.object), doing)
        yield event
      }
    },
    read: (path, signal) => call({ method: 'GET', path, doing: `answer ${path}` }, signal),
    connect: (path, protocol, signal) => transport.connect(path, protocol, 'open a stream', signal),
    health: () => transport.health(),
    close: () => transport.close(),
  }
}

/** `hidden`: it may not be read. */
export async function readable<T>(api: KubernetesApi, path: string): Promise<T | 'absent' | 'hidden'> {
  try {
    return await api.read<T>(path)
  } catch (error) {
    if (error instanceof KubernetesError && error.status === 404) return 'absent'
    if (error instanceof KubernetesError && error.status === 403) return 'hidden'
    throw error
  }
}

function queryOf({ labels, fields }: Selection): Record<string, string | undefined> {
  return { labelSelector: labels, fieldSelector: fields }
}

/** By pages; from the start again when the server has forgotten the state of the first page. */
async function listAll<T extends KubernetesObject>(
  transport: Transport,
  path: string,
  resource: Resource<T>,
  selection: Selection,
  signal: AbortSignal | undefined,
): Promise<ObjectList<T>> {
  const doing = `list the ${resource.singular}s`
  let items: T[] = []
  let next: string | undefined
  for (;;) {
    const query = { ...queryOf(selection), limit: String(PAGE), continue: next }
    try {
      const page = (await transport.call({ method: 'GET', path, query, doing }, signal)) as {
        items: T[] | null
        metadata: { resourceVersion: string; continue?: string }
      }
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

/** An answer about a removed object is itself, even if it is gone by now, or a `Status`. */
async function removed<T extends KubernetesObject>(answer: Promise<T>): Promise<T | undefined> {
  const object = await absentIf404(answer)
  if (object === undefined || object.kind === 'Status') return undefined
  const { metadata } = object
  const gone = metadata.deletionGracePeriodSeconds === 0 && !metadata.finalizers?.length
  return gone ? undefined : object
}
