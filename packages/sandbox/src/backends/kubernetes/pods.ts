/** Life cycle of sandboxes as Pods. */
import type { Duplex } from 'node:stream'

import type { BackendSandbox, OpenedSandbox, SandboxOwner, SandboxSpec } from '../../backend.ts'
import { SandboxError, workspaceMissing } from '../../errors.ts'
import { LABEL } from '../../names.ts'
import { checkAdmitted, checkOwn } from './admitted.ts'
import type { KubernetesApi } from './api.ts'
import { KubernetesError } from './api-error.ts'
import { readSpec } from './claim-template.ts'
import { type Claims, setting } from './claims.ts'
import { openExec, StreamEnded } from './exec-stream.ts'
import { KEY, ownerLabels, ownerOf, podName, readLabels } from './labels.ts'
import { type PersistentVolumeClaim, type Pod, PODS } from './objects.ts'
import type { StreamPace } from './pace.ts'
import { podEnd, podProblem, startTooLong } from './pod-problem.ts'
import { CONTAINER } from './pod-template.ts'
import { lacksRoom, Room } from './room.ts'
import { hasEnded, isEnding, isGated, isRunning, sandboxesOf } from './sandboxes-of.ts'
import type { Cache } from './watch.ts'

/** This file of the image may be run and not read, so that no command opens a relay. */
const RELAY = ['/usr/lib/sandlot/sbxd', 'relay']
/** Milliseconds from the open of a Pod until it runs: its image and a new node take long. */
export const START_MS = 100_000
/** Milliseconds for which a Pod without room is waited for: an autoscaler may add a node. */
const ROOM_MS = 45_000
/** Milliseconds from one warm Pod that gives its room to a person’s until the next one does. */
const GIVE_WAY_MS = 4_000
/** Milliseconds from the deletion of a Pod until it is gone, unless its node is lost. */
const END_MS = 20_000

/** Exit codes above it name the signal that ended a program. */
const SIGNALLED = 128
/** Relays that signals from within a sandbox may end in a while; then none is started in it. */
const KILLS = { most: 5, withinMs: 60_000 }
/** Milliseconds after which sbxd ends a relay without HELLO (docker/sandbox/src/pod/listen.c). */
const HELLO_MS = 2_000

interface PodsOptions {
  api: KubernetesApi
  deployment: string
  cache: Cache<Pod>
  claimCache: Cache<PersistentVolumeClaim>
  claims: Claims
  /** `name`: of the Pod that it replaces. */
  podOf: (spec: SandboxSpec, name?: string) => Pod
  fingerprint: (spec: SandboxSpec) => string
  pace: StreamPace
}

export class Pods {
  readonly #options: PodsOptions
  readonly #api: KubernetesApi
  readonly #cache: Cache<Pod>
  readonly #claims: Claims
  readonly #room: Room
  /** Why Pods ended that could not be replaced yet. */
  readonly #ended = new Map<string, SandboxError>()
  /** Times at which relays were killed, by uid of the Pod, on the clock of `performance.now()`. */
  readonly #killed = new Map<string, number[]>()

  constructor(options: PodsOptions) {
    this.#options = options
    this.#api = options.api
    this.#cache = options.cache
    this.#claims = options.claims
    this.#room = new Room(options)
  }

  async list(labels: Record<string, string>): Promise<BackendSandbox[]> {
    const { claimCache } = this.#options
    const wanted = Object.entries(labels)
    return sandboxesOf(await this.#cache.list(), await claimCache.list()).filter((sandbox) =>
      wanted.every(([name, value]) => sandbox.labels[name] === value),
    )
  }

  async inspect(idOrName: string): Promise<BackendSandbox | undefined> {
    return (await this.list({})).find(({ id, name }) => id === idOrName || name === idOrName)
  }

  async create(spec: SandboxSpec, signal?: AbortSignal): Promise<BackendSandbox> {
    const { deployment, fingerprint } = this.#options
    const owner = ownerOf(deployment, spec)
    if (owner === undefined) await this.#room.checkForWarm()
    const id = podName(deployment, spec.slot, owner?.generation ?? 0)
    await this.#claims.begin(spec, fingerprint(spec), signal)
    if ((await this.#cache.ask(id, signal)) === undefined) await this.#make(spec, signal)
    const made = (await this.list({ [LABEL.slot]: spec.slot })).find((sandbox) => sandbox.id === id)
    if (made !== undefined) return made
    throw new SandboxError(
      'exists',
      `The Pod name ${id} is taken on the cluster. Try again under another one.`,
    )
  }

  /** Running, with a new stream to its sbxd. */
  async open(id: string, signal?: AbortSignal): Promise<OpenedSandbox> {
    const ended = await this.#run(id, signal)
    const stream = await this.#openRelay(id, signal)
    try {
      // After it: the Pod that was seen before may have been replaced by one of the same name.
      const [pod, home] = await Promise.all([this.#cache.ask(id, signal), this.#claims.ofSandbox(id, signal)])
      if (pod?.metadata.uid === undefined || !isRunning(pod)) throw lost()
      const problem = checkOwn(home && this.#podOf(home, id), pod)
      if (problem !== undefined) throw problem
      return { stream, keyId: pod.metadata.uid, ended }
    } catch (error) {
      stream.destroy()
      throw error
    }
  }

  /** Commands have the uid of the relay, so one of them can kill every relay that is started. */
  async #openRelay(id: string, signal?: AbortSignal): Promise<Duplex> {
    const uid = (await this.#cache.get(id))?.metadata.uid
    if (uid === undefined) throw lost()
    const since = performance.now() - KILLS.withinMs
    for (const [pod, times] of this.#killed) if (!times.some((at) => at > since)) this.#killed.delete(pod)
    const recent = this.#killed.get(uid)?.filter((at) => at > since) ?? []
    if (recent.length >= KILLS.most)
      throw new SandboxError(
        'limit_reached',
        `Something in the sandbox has ended its connection ${KILLS.most} times within ${KILLS.withinMs / 1_000} s. Try again in a minute, or stop the sandbox, which ends its commands and keeps its files.`,
      )
    const stream = await openExec(
      this.#api,
      { pod: id, container: CONTAINER, command: RELAY },
      { pace: this.#options.pace, signal },
    )
    const opened = performance.now()
    stream.once('error', (error) => {
      // A later one without HELLO is ended by sbxd, as where the API server answers slowly.
      const isBeforeHello = !stream.readableDidRead && performance.now() - opened > HELLO_MS
      if (error instanceof StreamEnded && (error.exitCode ?? 0) > SIGNALLED && !isBeforeHello)
        this.#killed.set(uid, [...(this.#killed.get(uid) ?? []), performance.now()])
    })
    return stream
  }

  async stop(id: string): Promise<void> {
    const pod = await this.#cache.ask(id)
    if (pod !== undefined) await this.#delete(pod)
  }

  async remove(id: string): Promise<void> {
    this.#ended.delete(id)
    // First: interrupted, it is a stopped sandbox, and not a Pod that no claim names.
    await this.stop(id)
    await this.#claims.end(id)
  }

  /** The PersistentVolumeClaim first: of an interrupted claim it decides, and any agent ends it. */
  async claim(id: string, owner: SandboxOwner): Promise<void> {
    const home = await this.#claims.ofSandbox(id)
    const pod = await this.#cache.ask(id)
    if (home === undefined && pod === undefined) throw lost()
    const slot = readLabels((home ?? pod)?.metadata.labels ?? {})[LABEL.slot] ?? ''
    const others = (await this.#cache.list()).filter(
      ({ metadata: { name, labels = {} } }) => name !== id && readLabels(labels)[LABEL.slot] === slot,
    )
    if (others.some(({ metadata }) => metadata.labels?.[KEY.generation] === String(owner.generation)))
      throw new SandboxError(
        'exists',
        `The slot ${slot} has a Pod of the generation ${owner.generation} already.`,
      )
    if (home !== undefined) await this.#claims.setOwner(home, owner)
    if (pod !== undefined) await this.#label(pod, ownerLabels(owner))
  }

  /**
   * Brings the Pod to running from any state, or undoes what it began. Resolves with the reason why
   * the Pod that it replaced had ended.
   */
  async #run(id: string, signal?: AbortSignal): Promise<SandboxError | undefined> {
    const known = await this.#cache.get(id)
    if (known !== undefined && isRunning(known)) {
      await this.#finishClaim(known)
      return undefined
    }
    const deadline = AbortSignal.timeout(START_MS)
    const limit = signal === undefined ? deadline : AbortSignal.any([signal, deadline])
    const before = await this.#cache.ask(id, limit)
    const ended = this.#ended.get(id) ?? (before && podEnd(before))
    const pod = await this.#startable(id, before, limit)
    try {
      if (isGated(pod)) await this.#ungate(pod, limit)
      await this.#whenRunning(pod, limit)
      this.#ended.delete(id)
      return ended
    } catch (error) {
      if (ended !== undefined) this.#ended.set(id, ended)
      // An agent that leaves may have given this person to another one, which waits for this Pod.
      const problem = signal?.aborted === true ? undefined : await this.#undo(pod)
      throw deadline.aborted && problem !== undefined ? problem : error
    }
  }

  /**
   * Removes a Pod that is not to start later, unseen and without a controller; one that runs may be
   * in use. Resolves with the reason why it took too long.
   */
  async #undo({ metadata: { name, uid } }: Pod): Promise<SandboxError | undefined> {
    try {
      const now = await this.#cache.ask(name)
      if (now === undefined || now.metadata.uid !== uid || isRunning(now)) return undefined
      const { resourceVersion } = now.metadata
      await this.#cache.remove(name, { uid, resourceVersion, graceSeconds: 2 })
      return startTooLong(now, START_MS)
    } catch {
      // The failure that is being undone is the one to report.
      return undefined
    }
  }

  /** A Pod that can run: as it is, or made again in place of one that has ended. */
  async #startable(id: string, before: Pod | undefined, signal: AbortSignal): Promise<Pod> {
    let pod = before
    if (pod !== undefined && (isEnding(pod) || hasEnded(pod))) {
      await this.#delete(pod)
      pod = undefined
    }
    const home = await this.#claims.ofSandbox(id, signal)
    // A Pod that the slot's claim does not name is not ours, whatever its labels say.
    if (home === undefined) throw lost()
    if (pod !== undefined && isGated(pod) && checkAdmitted(this.#podOf(home, id), pod) !== undefined) {
      await this.#delete(pod)
      pod = undefined
    }
    if (pod !== undefined) {
      await this.#finishClaim(pod, home)
      return pod
    }
    if (isEnding(home)) throw workspaceMissing(home.metadata.name)
    return this.#make(specOf(home), signal, id)
  }

  /** The Pod as it is made for this claim. */
  #podOf(home: PersistentVolumeClaim, id: string): Pod {
    return this.#options.podOf(specOf(home), id)
  }

  /** Creates the gated Pod of a spec, or finds it. `id`: under this name, as before. */
  async #make(spec: SandboxSpec, signal?: AbortSignal, id?: string): Promise<Pod> {
    const asked = this.#options.podOf(spec, id)
    const { name } = asked.metadata
    try {
      const made = await this.#cache.create(asked, signal)
      await this.#mustBeAsAsked(asked, made)
      return made
    } catch (error) {
      if (!(error instanceof KubernetesError && error.reason === 'AlreadyExists')) throw error
      const found = await this.#cache.ask(name, signal)
      if (found === undefined || isEnding(found)) throw lost()
      await this.#mustBeAsAsked(asked, found)
      return found
    }
  }

  /** Nothing that admission changed in a Pod, or that another maker put there, ever starts. */
  async #mustBeAsAsked(asked: Pod, made: Pod): Promise<void> {
    const problem = checkAdmitted(asked, made)
    if (problem === undefined) return
    if (isGated(made)) await this.#cache.remove(made.metadata.name, { uid: made.metadata.uid })
    throw problem
  }

  /** Never a second Pod on the same home: whatever else has one of the slot must be gone first. */
  async #ungate(pod: Pod, signal: AbortSignal): Promise<void> {
    const { name, labels = {} } = pod.metadata
    const { [LABEL.slot]: slot = '', [LABEL.deployment]: deployment = '' } = readLabels(labels)
    const selection = { labels: `sandlot.dev/deployment=${deployment},sandlot.dev/slot=${slot}` }
    const { items } = await this.#api.list(PODS, selection, signal)
    for (const other of items) {
      const { name: otherName, uid, labels: otherLabels } = other.metadata
      if (otherName === name) continue
      // A copy for a backup may hold the volume on another node; it is made again on this Pod's.
      if (otherLabels?.[KEY.role] === 'copy')
        await this.#api.remove(PODS, otherName, { uid, graceSeconds: 1 }, signal)
      // A gated one too: its own open finds it gone, whichever of the two is faster.
      else if (isEnding(other) || hasEnded(other) || isGated(other)) await this.#delete(other)
      else throw lost()
    }
    const home = await this.#claims.ofSandbox(name, signal)
    if (home === undefined) throw lost()
    // One that gave its room away would take it back.
    if (home.metadata.labels?.[KEY.owner] === undefined) await this.#room.checkForWarm()
    let opened: Pod
    try {
      opened = await this.#cache.patch(
        name,
        [
          { op: 'test', path: '/metadata/uid', value: pod.metadata.uid },
          { op: 'test', path: '/spec/schedulingGates/0/name', value: KEY.gate },
          { op: 'remove', path: '/spec/schedulingGates' },
        ],
        signal,
      )
    } catch (error) {
      // Another controller was first.
      const now = await this.#cache.ask(name, signal)
      if (now === undefined || now.metadata.uid !== pod.metadata.uid) throw lost()
      if (isGated(now)) throw error
      opened = now
    }
    // Admission may change its image with the gate.
    const problem = checkAdmitted(this.#podOf(home, name), opened)
    if (problem === undefined) return
    await this.#delete(opened)
    throw problem
  }

  async #whenRunning(pod: Pod, signal: AbortSignal): Promise<void> {
    const { name } = pod.metadata
    const began = performance.now()
    const home = await this.#claims.ofSandbox(name, signal)
    const isWarm = home?.metadata.labels?.[KEY.owner] === undefined
    let gaveWay = Number.NEGATIVE_INFINITY
    await this.#cache.until(
      name,
      (now) => {
        if (now === undefined || now.metadata.uid !== pod.metadata.uid || isEnding(now)) throw lost()
        if (isRunning(now)) return true
        const problem = podProblem(now, home)
        const waited = performance.now() - began
        if (problem !== undefined && (problem.isFinal || waited > ROOM_MS)) throw problem.error
        if (!isWarm && lacksRoom(now) && waited - gaveWay > GIVE_WAY_MS) {
          gaveWay = waited
          void this.#room.giveWay(name)
        }
        return false
      },
      { doing: `start the Pod ${name}`, ms: START_MS, signal },
    )
  }

  /** Deletes this Pod and waits until it is gone; another one of its name stays. Idempotent. */
  async #delete({ metadata: { name, uid }, spec: { nodeName } }: Pod): Promise<void> {
    try {
      await this.#cache.remove(name, { uid, graceSeconds: 2 })
    } catch (error) {
      if (error instanceof KubernetesError && error.outrun) return
      throw error
    }
    try {
      await this.#cache.until(name, (left) => left?.metadata.uid !== uid, {
        doing: `remove the Pod ${name}`,
        ms: END_MS,
      })
    } catch (error) {
      // Not where the API does not answer: that says nothing of the node.
      const left = await this.#cache.ask(name)
      if (left === undefined || left.metadata.uid !== uid) return
      if (nodeName === undefined) throw error
      throw new SandboxError(
        'workspace_unreachable',
        `The node ${nodeName} has not ended this sandbox within ${END_MS / 1_000} s, so nothing else may use its files. They are back with the node. See “kubectl get node ${nodeName}”; only where that machine is off for good, an administrator deletes its Node object.`,
        { cause: error },
      )
    }
  }

  /** A controller may have ended between the two objects of a claim. */
  async #finishClaim(pod: Pod, known?: PersistentVolumeClaim): Promise<void> {
    const home = known ?? (await this.#options.claimCache.get(pod.metadata.name.replace(/-\d+$/, '')))
    const { [KEY.owner]: tag, [KEY.generation]: generation } = home?.metadata.labels ?? {}
    if (home?.metadata.annotations?.[KEY.sandbox] !== pod.metadata.name || tag === undefined) return
    await this.#label(pod, ownerLabels({ tag, generation: Number(generation) }))
  }

  async #label(pod: Pod, labels: Record<string, string>): Promise<void> {
    if (hasLabels(pod, labels)) return
    const { name, uid } = pod.metadata
    await this.#cache.patch(name, [
      { op: 'test', path: '/metadata/uid', value: uid },
      ...setting('labels', labels),
    ])
  }
}

function specOf({ metadata: { name, labels = {}, annotations = {} } }: PersistentVolumeClaim): SandboxSpec {
  return readSpec({ name, labels, annotations })
}

function hasLabels({ metadata }: Pod, labels: Record<string, string>): boolean {
  return Object.entries(labels).every(([key, value]) => metadata.labels?.[key] === value)
}

function lost(): SandboxError {
  return new SandboxError('sandbox_lost', 'The sandbox no longer exists on the cluster.')
}
