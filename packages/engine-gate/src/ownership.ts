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

/** How a question is put on behalf of one client. */
export interface Client {
  /** `/v1.41` */
  version: string
  signal: AbortSignal
}

interface Ownership {
  /**
   * The slot of a container of ours by its full id. @throws Refusal 404 when it is not ours or not
   * there.
   */
  slotOf(client: Client, id: string): Promise<string>
  /** The engine's own answer about a container of ours. @throws Refusal 404 */
  inspect(client: Client, idOrName: string): Promise<{ text: string }>
  /** The engine's own answer about a volume of ours. @throws Refusal 404 */
  inspectVolume(client: Client, name: string): Promise<{ text: string }>
  /** The volume that a container of this slot may have. @throws Refusal 404 or 403 */
  checkVolume(client: Client, wanted: { slot: string; uid: number; volume: string }): Promise<void>
  /** A container is gone. */
  forget(id: string): void
  /** Run `make`, which makes one more of them. @throws Refusal 403 when there may be no more. */
  withRoom<T>(client: Client, kind: 'containers' | 'volumes', make: () => Promise<T>): Promise<T>
}

/** What belongs to one deployment, asked of the engine and never of a client. */
export function createOwnership(
  engine: Engine,
  deployment: string,
  most: { containers: number; volumes: number },
): Ownership {
  /**
   * Slots of containers that were seen to be ours. An id is never used twice and its labels never
   * change.
   */
  const slots = new Map<string, string>()
  /** Being made: perhaps in the engine's list already, perhaps not. */
  const underWay = { containers: 0, volumes: 0 }

  async function find(client: Client, path: string, what: string): Promise<{ json: unknown; text: string }> {
    const answer = await engine.read({ method: 'GET', path: client.version + path, signal: client.signal })
    if (answer.status === 200) return answer
    if (answer.status === 404) throw new Refusal(404, `No such ${what}`)
    throw new Refusal(502, `The Docker engine could not look at the ${what} (HTTP ${answer.status}).`)
  }

  async function inspect(client: Client, idOrName: string): Promise<{ text: string }> {
    // Anything else could be the beginning of an id, or another program's name: it is not passed to
    // the engine.
    const isName = parseName(deployment, idOrName) !== undefined
    if (!isName && !/^[0-9a-f]{64}$/.test(idOrName)) throw new Refusal(404, `No such container: ${idOrName}`)
    const found = await find(client, `/containers/${idOrName}/json`, `container: ${idOrName}`)
    const { Id, Config } = container.parse(found.json)
    const own = Config.Labels ?? {}
    if (!isOurs(own) || (!isName && Id !== idOrName)) throw new Refusal(404, `No such container: ${idOrName}`)
    slots.set(Id, own[LABEL.slot] ?? '')
    return found
  }

  function isOurs(found: Record<string, string>): boolean {
    return ownLabels(deployment).every((label) => {
      const at = label.indexOf('=')
      return found[label.slice(0, at)] === label.slice(at + 1)
    })
  }

  async function lookAtVolume(client: Client, name: string) {
    const missing = new Refusal(404, `No such volume: ${name}`)
    if (parseName(deployment, name)?.kind !== 'pool') throw missing
    const found = await find(client, `/volumes/${name}`, `volume: ${name}`)
    const seen = volume.parse(found.json)
    // Made with options other than a size it is a mount of something else.
    const plain = seen.Driver === 'local' && Object.keys(seen.Options ?? {}).every((name) => name === 'size')
    if (!isOurs(seen.Labels ?? {}) || seen.Name !== name || !plain) throw missing
    return { ...found, labels: seen.Labels ?? {} }
  }

  async function count(client: Client, kind: 'containers' | 'volumes'): Promise<number> {
    const filters = encodeURIComponent(JSON.stringify({ label: ownLabels(deployment) }))
    const path =
      kind === 'containers' ? `/containers/json?all=1&filters=${filters}` : `/volumes?filters=${filters}`
    const { json } = await find(client, path, `list of ${kind}`)
    return kind === 'containers' ? listed.parse(json).length : (volumes.parse(json).Volumes ?? []).length
  }

  return {
    inspect,
    inspectVolume: lookAtVolume,
    async slotOf(client, id) {
      if (!slots.has(id)) await inspect(client, id)
      return slots.get(id) ?? ''
    },
    async checkVolume(client, wanted) {
      const found = await lookAtVolume(client, wanted.volume)
      const own = slotLabels(deployment, wanted)
      if (Object.entries(own).some(([name, value]) => found.labels[name] !== value))
        throw forbidden(`the volume ${wanted.volume} is another slot's or another uid's`)
    },
    forget: (id) => slots.delete(id),
    async withRoom(client, kind, make) {
      underWay[kind] += 1
      try {
        if ((await count(client, kind)) + underWay[kind] > most[kind]) {
          const setting = `SANDLOT_ENGINE_MAX_${kind.toUpperCase()}`
          throw forbidden(`there may be ${most[kind]} ${kind} (${setting}), and there are`)
        }
        return await make()
      } finally {
        underWay[kind] -= 1
      }
    },
  }
}
