/**
 * Time that checks against the schemas of servers take, by person: a server that takes too much is
 * set aside for that person, so that its schemas hold up no other person.
 */
import { SerialQueue } from '@sandlot/shared/async/serial-queue'
import { withNearest } from '@sandlot/shared/base/exact-numbers'
import { LRUCache } from 'lru-cache'
import { ToolError } from '../tools/tool-error.ts'
import { type SchemaCheck, checkSchema } from './schema-check.ts'
import type { Schema } from './schema-dialects.ts'
import type { ServerSpec } from './server-spec.ts'

/** Milliseconds of the processor for all checks of one person in a window. */
const MOST_MS = 1_000
const WINDOW_MS = 60_000
/** Those who checked nothing for the longest are forgotten beyond so many. */
const MAX_PEOPLE = 1_000

/** Why such a server is not used, for people and for the model. */
const WHY =
  'checking calls against its schema takes too long. It is not used until it is changed, removed and added again'

interface Spent {
  since: number
  ms: Map<ServerSpec, number>
  /** One check at a time, in the order of the calls: the threads are for everybody. */
  readonly queue: SerialQueue
}

interface CheckedCall {
  spec: ServerSpec
  userId: string
}

export class SlowServers {
  readonly #now: () => number
  readonly #spent = new LRUCache<string, Spent>({ max: MAX_PEOPLE })
  /** Forgotten with the server: one that is added again is another one. */
  readonly #setAside = new WeakMap<ServerSpec, Set<string>>()

  /** `now`: milliseconds on a clock that never jumps. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  /** Why this server is not used for this person; undefined: it is. */
  whySetAside({ spec, userId }: CheckedCall): string | undefined {
    return this.#setAside.get(spec)?.has(userId) === true ? WHY : undefined
  }

  /** Rejects with `ToolError` (`schema_too_slow`) where the server is, or is hereby, set aside. */
  check(call: CheckedCall, schema: Schema, value: unknown): Promise<SchemaCheck> {
    const { queue, ms } = this.#spentBy(call.userId)
    return queue.run(async () => {
      if (this.whySetAside(call) !== undefined) throw tooSlow(call.spec)
      this.#refuseBeyondLimit(call, ms)
      // The validator measures numbers as JavaScript has them.
      const check = await checkSchema(schema, withNearest(value))
      ms.set(call.spec, (ms.get(call.spec) ?? 0) + check.cpuMs)
      if (check.fits !== 'unknown' || !check.timedOut) return check
      this.#add(call)
      throw tooSlow(call.spec)
    })
  }

  /** Sets aside the server that took the most of this person's time. */
  #refuseBeyondLimit({ spec, userId }: CheckedCall, ms: Spent['ms']): void {
    const total = [...ms.values()].reduce((sum, one) => sum + one, 0)
    if (total < MOST_MS) return
    const [slowest = spec] = [...ms].toSorted(([, a], [, b]) => b - a)[0] ?? []
    this.#add({ spec: slowest, userId })
    throw tooSlow(spec, slowest)
  }

  #add({ spec, userId }: CheckedCall): void {
    const people = this.#setAside.get(spec) ?? new Set()
    this.#setAside.set(spec, people.add(userId))
  }

  #spentBy(userId: string): Spent {
    const now = this.#now()
    const known = this.#spent.get(userId)
    if (known !== undefined && now - known.since < WINDOW_MS) return known
    const made: Spent = { since: now, ms: new Map(), queue: known?.queue ?? new SerialQueue() }
    this.#spent.set(userId, made)
    return made
  }
}

function tooSlow(spec: ServerSpec, slowest = spec): ToolError {
  const why =
    spec === slowest
      ? `${spec.name} was set aside: ${WHY}.`
      : `Checks of this minute took too long, most of them for ${slowest.name}, which is set aside. Try again in a minute.`
  return new ToolError('schema_too_slow', why)
}
