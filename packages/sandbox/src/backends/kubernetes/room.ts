/** Room on full nodes: Pods of the pool give way to those of people. */
import { SandboxError } from '../../errors.ts'
import { type KubernetesApi, readable } from './api.ts'
import type { Claims } from './claims.ts'
import { KEY } from './labels.ts'
import { canBeOn, type PersistentVolume } from './node-affinity.ts'
import type { KubernetesObject, PersistentVolumeClaim, Pod } from './objects.ts'
import { isEnding, isRunning } from './sandboxes-of.ts'
import type { Cache } from './watch.ts'

/** Reasons of the scheduler that end with another Pod. */
const LACKS_ROOM = /Insufficient|Too many pods/

/** Annotation of a claim by the scheduler, before its volume is made. */
const SELECTED_NODE = 'volume.kubernetes.io/selected-node'

interface RoomOptions {
  api: KubernetesApi
  cache: Cache<Pod>
  claims: Claims
}

export class Room {
  readonly #api: KubernetesApi
  readonly #cache: Cache<Pod>
  readonly #claims: Claims
  #isGivingWay = false

  constructor({ api, cache, claims }: RoomOptions) {
    this.#api = api
    this.#cache = cache
    this.#claims = claims
  }

  /** Rejects with `host_full` while a person’s Pod waits for room: a warm one would take it. */
  async checkForWarm(): Promise<void> {
    if (!(await this.#cache.list()).some((pod) => !isWarm(pod) && lacksRoom(pod))) return
    throw new SandboxError(
      'host_full',
      'A user’s sandbox waits for room on a node, so none is created in advance.',
    )
  }

  /**
   * Deletes one warm Pod on a node that the home of this one can be used on: all have one priority,
   * because that of a warm one would stay with it when it is claimed. Never rejects: the Pod that
   * lacks room waits in any case.
   */
  async giveWay(id: string): Promise<void> {
    if (this.#isGivingWay) return
    this.#isGivingWay = true
    try {
      const warm = (await this.#cache.list()).filter((pod) => isWarm(pod) && isRunning(pod))
      if (warm.length === 0) return
      const home = await this.#claims.ofSandbox(id)
      // Its node is chosen, and its volume is being made there.
      const isBinding = home?.metadata.annotations?.[SELECTED_NODE] !== undefined
      if (home === undefined || (isBinding && home.spec.volumeName === undefined)) return
      const volume = await this.#volumeOf(home)
      for (const pod of warm) if ((await this.#reaches(volume, pod)) && (await this.#delete(pod))) return
    } catch {
      // Another one is tried soon; nothing else depends on it.
    } finally {
      this.#isGivingWay = false
    }
  }

  /** Undefined: not bound yet, or it may not be read, as with the chart of an earlier version. */
  async #volumeOf(home: PersistentVolumeClaim): Promise<PersistentVolume | undefined> {
    const name = home.spec.volumeName
    if (name === undefined) return undefined
    const volume = await readable<PersistentVolume>(this.#api, `/api/v1/persistentvolumes/${name}`)
    return typeof volume === 'string' ? undefined : volume
  }

  async #reaches(volume: PersistentVolume | undefined, pod: Pod): Promise<boolean> {
    if (volume?.spec.nodeAffinity === undefined) return true
    const node = await readable<KubernetesObject>(this.#api, `/api/v1/nodes/${pod.spec.nodeName ?? ''}`)
    return typeof node === 'string' ? node === 'hidden' : canBeOn(volume, node)
  }

  /** False where it was claimed just now. */
  async #delete({ metadata: { name, uid, resourceVersion } }: Pod): Promise<boolean> {
    const home = await this.#claims.ofSandbox(name)
    // A claim changes the PersistentVolumeClaim first, then the version of the Pod.
    if (home?.metadata.labels?.[KEY.owner] !== undefined) return false
    await this.#cache.remove(name, { uid, resourceVersion, graceSeconds: 2 })
    return true
  }
}

const isWarm = ({ metadata }: Pod): boolean => metadata.labels?.[KEY.owner] === undefined

/** No node has room for it now. */
export function lacksRoom(pod: Pod): boolean {
  const scheduled = pod.status?.conditions?.find(({ type }) => type === 'PodScheduled')
  return scheduled?.status === 'False' && LACKS_ROOM.test(scheduled.message ?? '') && !isEnding(pod)
}
