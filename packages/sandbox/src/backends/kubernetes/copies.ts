/** Copies homes as tar streams, through a Pod of its own on the claim. */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Duplex } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'

import type { BackendCopies, BackendVolume, SandboxSpec } from '../../backend.ts'
import { SandboxError } from '../../errors.ts'
import { LABEL, poolName } from '../../names.ts'
import { CHANGED_WHILE_READ, tarArguments } from '../copy-tar.ts'
import type { KubernetesApi } from './api.ts'
import type { Claims } from './claims.ts'
import { openExec } from './exec-stream.ts'
import { selectorOf } from './labels.ts'
import { CLAIMS, PODS, type Pod } from './objects.ts'
import type { StreamPace } from './pace.ts'
import { podProblem } from './pod-problem.ts'
import { COPY_CONTAINER, copyTemplate, type PodSettings } from './pod-template.ts'
import { START_MS } from './pods.ts'
import { hasEnded, isEnding, isGated, isRunning } from './sandboxes-of.ts'
import { createCache, type Cache } from './watch.ts'

const HOME = '/volume/home'
/** Milliseconds for which a sandbox that ends is waited for. */
const END_MS = 20_000
/** The same of one that starts: it has a node, or is removed, a moment after `START_MS`. */
const SETTLE_MS = START_MS + END_MS

/**
 * The word of its first line comes back when tar has ended well, because the end of an exec proves
 * nothing; no file of a home can hold it. A home that was never opened is empty.
 */
const COMMANDS = {
  read: `read -r word; if [ -e ${HOME} ]; then tar ${tarArguments('read', HOME).join(' ')}; else tar -cf - -T /dev/null; fi; [ $? -le ${CHANGED_WHILE_READ} ] && printf %s "$word" && read -r word`,
  write: `read -r word; tar ${tarArguments('write', HOME).join(' ')} && printf %s "$word" && sleep 5`,
}

/** Parts of the Pods that copy, and of the claims that they fill. */
export type CopiesFrom = Pick<SandboxSpec, 'image' | 'limits'>

interface CopiesOptions {
  api: KubernetesApi
  deployment: string
  settings: PodSettings
  claims: Claims
  pace: StreamPace
  from: CopiesFrom | undefined
}

export class Copies implements BackendCopies {
  readonly #options: CopiesOptions
  readonly #cache: Cache<Pod>

  constructor(options: CopiesOptions) {
    this.#options = options
    this.#cache = createCache(options.api, PODS, { labels: selectorOf(options.deployment, 'copy') })
  }

  async exists(name: string): Promise<boolean> {
    return (await this.#options.api.get(CLAIMS, name)) !== undefined
  }

  async *read(name: string): AsyncGenerator<Buffer> {
    const volume = (await this.#options.claims.list()).find((each) => each.name === name)
    if (volume === undefined) throw new SandboxError('sandbox_lost', `Volume ${name} no longer exists.`)
    try {
      yield* this.#read(this.#specOf(volume))
    } catch (error) {
      throw failed(`${name} could not be read`, error)
    }
  }

  async *#read(spec: SandboxSpec): AsyncGenerator<Buffer> {
    const pod = await this.#start(spec, 'read')
    try {
      const word = newWord()
      const stream = await this.#exec(pod, 'read')
      stream.write(`${word}\n`)
      yield* upTo(stream, Buffer.from(word))
    } finally {
      await this.#remove(pod)
    }
  }

  async write(volume: BackendVolume, tar: AsyncIterable<Uint8Array>): Promise<void> {
    const { name } = volume
    const { claims } = this.#options
    const spec = this.#specOf(volume)
    if (await this.exists(name)) throw new SandboxError('exists', `Volume ${name} exists already.`)
    try {
      await claims.ensure(spec)
      const pod = await this.#start(spec, 'write')
      try {
        await fill(await this.#exec(pod, 'write'), tar)
      } finally {
        await this.#remove(pod)
      }
    } catch (error) {
      await claims.remove(name)
      throw failed(`${name} could not be written`, error)
    }
  }

  async removeLeftHelpers(): Promise<void> {
    const { api, deployment } = this.#options
    const { items } = await api.list(PODS, { labels: selectorOf(deployment, 'copy') })
    for (const pod of items) await this.#remove(pod)
  }

  close(): void {
    this.#cache.close()
  }

  #specOf({ name, labels }: BackendVolume): SandboxSpec {
    const { deployment, from } = this.#options
    if (from === undefined)
      throw new SandboxError('invalid_arguments', 'No image is set for the Pods that copy homes.')
    const { [LABEL.slot]: slot = '', [LABEL.uid]: uid } = labels
    if (labels[LABEL.deployment] !== deployment || name !== poolName(deployment, slot))
      throw new SandboxError('permission', `The volume ${name} is not one of this deployment's.`)
    return { ...from, name, slot, uid: Number(uid), volume: name, labels: {} }
  }

  /**
   * Node of the slot's sandbox; undefined where it does not run. A volume may be attached to one
   * node only, so a sandbox that starts or ends is waited for. Rejects with `workspace_unreachable`
   * after a time-out, as on a lost node.
   */
  async #nodeOf(slot: string): Promise<string | undefined> {
    const { api, deployment } = this.#options
    const labels = `${selectorOf(deployment)},sandlot.dev/slot=${slot}`
    let [began, before] = [performance.now(), '']
    for (;;) {
      const { items } = await api.list(PODS, { labels })
      const user = items.find((pod) => !isGated(pod) && !hasEnded(pod))
      const node = user?.spec.nodeName
      if (user === undefined || (node !== undefined && !isEnding(user))) return node
      // A time-out of each state: one that starts may end, or be replaced.
      const state = `${user.metadata.uid} ${node} ${isEnding(user)}`
      if (state !== before) [began, before] = [performance.now(), state]
      if (performance.now() - began > (node === undefined ? SETTLE_MS : END_MS))
        throw new SandboxError(
          'workspace_unreachable',
          node === undefined
            ? `Its sandbox has waited for a node for ${SETTLE_MS / 1_000} s.`
            : `The node ${node} has not ended its sandbox within ${END_MS / 1_000} s.`,
        )
      await sleep(500)
    }
  }

  /** A running Pod, on the node of the sandbox where that runs. */
  async #start(spec: SandboxSpec, act: 'read' | 'write'): Promise<Pod> {
    const { api, deployment, settings } = this.#options
    const node = await this.#nodeOf(spec.slot)
    const name = `${spec.volume}-copy-${randomBytes(4).toString('hex')}`
    const asked = copyTemplate({ deployment, spec, settings, name, act, node })
    const pod = await this.#cache.create(asked)
    const claim = await api.get(CLAIMS, spec.volume)
    const began = performance.now()
    try {
      await this.#cache.until(
        name,
        (now) => {
          if (now === undefined || isEnding(now))
            throw new SandboxError('engine_unavailable', `The Pod ${name} was removed.`, {
              unreachable: true,
            })
          if (isRunning(now)) return true
          const problem = podProblem(now, claim)
          if (problem !== undefined && (problem.isFinal || performance.now() - began > START_MS / 2))
            throw problem.error
          return false
        },
        { doing: `start the Pod ${name}`, ms: START_MS },
      )
      return pod
    } catch (error) {
      await this.#remove(pod)
      throw error
    }
  }

  #exec(pod: Pod, act: 'read' | 'write'): Promise<Duplex> {
    const command = ['/bin/sh', '-c', COMMANDS[act]]
    const place = { pod: pod.metadata.name, container: COPY_CONTAINER, command }
    return openExec(this.#options.api, place, { pace: this.#options.pace })
  }

  async #remove({ metadata: { name, uid } }: Pod): Promise<void> {
    await this.#cache.remove(name, { uid, graceSeconds: 1 })
  }
}

const newWord = (): string => randomBytes(16).toString('hex')

/** The bytes before `end`, after which nothing comes. A stream that ends earlier rejects. */
async function* upTo(stream: Duplex, end: Buffer): AsyncGenerator<Buffer> {
  let held = Buffer.alloc(0)
  for await (const bytes of stream) {
    held = Buffer.concat([held, bytes as Buffer])
    const sure = Math.max(0, held.length - end.length)
    if (sure > 0) yield held.subarray(0, sure)
    held = held.subarray(sure)
    if (held.equals(end)) return
  }
  throw new SandboxError('engine_unavailable', 'The stream ended early.', { unreachable: true })
}

async function fill(stream: Duplex, tar: AsyncIterable<Uint8Array>): Promise<void> {
  const word = newWord()
  async function* input(): AsyncGenerator<Uint8Array> {
    yield Buffer.from(`${word}\n`)
    yield* tar
  }
  let output = ''
  const closed = once(stream, 'close')
  // The stream’s own error tells more than that of what was sent to it.
  const sent = pipeline(Readable.from(input(), { objectMode: false }), stream).catch(() => undefined)
  await new Promise<void>((resolve, reject) => {
    stream.on('data', (bytes: Buffer) => {
      output += bytes.toString()
      if (output === word) resolve()
    })
    stream.once('error', reject)
    void closed.then(() => reject(new SandboxError('engine_unavailable', 'The stream ended early.')), reject)
  }).finally(() => stream.destroy())
  await sent
}

function failed(what: string, error: unknown): unknown {
  if (!(error instanceof SandboxError)) return error
  const { code, message, unreachable } = error
  return new SandboxError(code, `${what}: ${message}`, { cause: error, unreachable })
}
