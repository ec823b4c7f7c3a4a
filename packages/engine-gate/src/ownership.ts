import { z } from 'zod'

import { LABEL, parseName, slotLabels } from '@sandlot/sandbox/names'
import type { Engine } from './engine.ts'
import { ownLabels } from './filters.ts'
import { forbidden, Refusal } from './refusal.ts'

const labels = z.record(z.string(), z.string()).nullish()
const container = z.object({ Id: z.string(), Config: z.object({ Labels: labels }) })
const volume = z.object({
  Name: z.string(),
  Driver: z.string(),
  Options: z.record(z.string(), z.string()).nullish(),
  Labels: labels,
})
const listed = z.array(z.object({ Id: z.string() }))
const volumes = z.object({ Volumes: z.array(z.unknown()).nullish() })

/** The client on whose behalf the engine is asked. */
export interface Client {
  /** `/v1.41` */
  version: string
  signal: AbortSignal
}

type Countable = 'containers' | 'volumes'

/** Containers and volumes of one deployment, as the engine lists them; never as a client claims. */
export class Ownership {
  readonly #engine: Engine
  readonly #deployment: string
  readonly #most: Readonly<Record<Countable, number>>
  /** Slots of our containers. An id is never reused, and its labels never change. */
  readonly #slots = new Map<string, string>()
  /** In creation: perhaps in the engine's list already, perhaps not. */
  readonly #underWay: Record<Countable, number> = { containers: 0, volumes: 0 }

  constructor(engine: Engine, deployment: string, most: Readonly<Record<Countable, number>>) {
    this.#engine = engine
    this.#deployment = deployment
    this.#most = most
  }

  /**
   * The slot of our container with this full id. @throws Refusal 404 when it is not ours or
   * missing.
   */
  async slotOf(client: Client, id: string): Promise<string> {
    if (!this.#slots.has(id)) await this.inspect(client, id)
    return this.#slots.get(id) ?? ''
  }

  /** The engine's own answer about our container. @throws Refusal 404 */
  async inspect(client: Client, idOrName: string): Promise<{ text: string }> {
    // Anything else may be the beginning of an id, or another program's name: it is not passed to
    // the engine.
    const isName = parseName(this.#deployment, idOrName) !== undefined
    if (!isName && !/^[0-9a-f]{64}$/.test(idOrName)) throw new Refusal(404, `No such container: ${idOrName}`)
    const found = await this.#find(client, `/containers/${idOrName}/json`, `container: ${idOrName}`)
    const { Id, Config } = container.parse(found.json)
    const own = Config.Labels ?? {}
    if (!this.#isOurs(own) || (!isName && Id !== idOrName))
      throw new Refusal(404, `No such container: ${idOrName}`)
    this.#slots.set(Id, own[LABEL.slot] ?? '')
    return found
  }

  /** The engine's own answer about our volume. @throws Refusal 404 */
  async inspectVolume(
    client: Client,
    name: string,
  ): Promise<{ text: string; labels: Record<string, string> }> {
    const missing = new Refusal(404, `No such volume: ${name}`)
    if (parseName(this.#deployment, name)?.kind !== 'pool') throw missing
    const found = await this.#find(client, `/volumes/${name}`, `volume: ${name}`)
    const seen = volume.parse(found.json)
    // With options other than a size it is a mount of something else.
    const plain = seen.Driver === 'local' && Object.keys(seen.Options ?? {}).every((name) => name === 'size')
    if (!this.#isOurs(seen.Labels ?? {}) || seen.Name !== name || !plain) throw missing
    return { ...found, labels: seen.Labels ?? {} }
  }

  /** Checks the volume that a container of this slot may have. @throws Refusal 404 or 403 */
  async checkVolume(client: Client, wanted: { slot: string; uid: number; volume: string }): Promise<void> {
    const found = await this.inspectVolume(client, wanted.volume)
    const own = slotLabels(this.#deployment, wanted)
    if (Object.entries(own).some(([name, value]) => found.labels[name] !== value))
      throw forbidden(`the volume ${wanted.volume} is another slot's or another uid's`)
  }

  /** After the removal of a container. */
  forget(id: string): void {
    this.#slots.delete(id)
  }

  /** Runs `make`, which creates one more of them. @throws Refusal 403 when there may be no more. */
  async withRoom<T>(client: Client, kind: Countable, make: () => Promise<T>): Promise<T> {
    this.#underWay[kind] += 1
    try {
      if ((await this.#count(client, kind)) + this.#underWay[kind] > this.#most[kind]) {
        const setting = kind === 'containers' ? ' (SANDLOT_ENGINE_MAX_CONTAINERS)' : ''
        throw forbidden(`there may be ${this.#most[kind]} ${kind}${setting}, and there are`)
      }
      return await make()
    } finally {
      this.#underWay[kind] -= 1
    }
  }

  async #find(client: Client, path: string, what: string): Promise<{ json: unknown; text: string }> {
    const answer = await this.#engine.read({
      method: 'GET',
      path: client.version + path,
      signal: client.signal,
    })
    if (answer.status === 200) return answer
    if (answer.status === 404) throw new Refusal(404, `No such ${what}`)
    throw new Refusal(502, `The Docker engine could not inspect the ${what} (HTTP ${answer.status}).`)
  }

  #isOurs(found: Record<string, string>): boolean {
    return ownLabels(this.#deployment).every((label) => {
      const at = label.indexOf('=')
      return found[label.slice(0, at)] === label.slice(at + 1)
    })
  }

  async #count(client: Client, kind: Countable): Promise<number> {
    const filters = encodeURIComponent(JSON.stringify({ label: ownLabels(this.#deployment) }))
    const path =
      kind === 'containers' ? `/containers/json?all=1&filters=${filters}` : `/volumes?filters=${filters}`
    const { json } = await this.#find(client, path, `list of ${kind}`)
    return kind === 'containers' ? listed.parse(json).length : (volumes.parse(json).Volumes ?? []).length
  }
}
