/**
 * One life of an agent's process. It passes points (before and after each commit, each live event, each step towards the
 * sandbox or the model) and ends at one of them: as a process by SIGKILL, inside a test by freezing, so that nothing that
 * it would have done next is ever done.
 */
import type { SessionEvent } from '@sandlot/shared/chat/events'
import { isLive, isOutcome, sandlotEventOf } from '@sandlot/shared/chat/events'
import type { Sandbox } from '@sandlot/sandbox/sandbox'
import type { SessionStore } from '@sandlot/storage/sessions/store'
import type { Model } from '../../src/model/model.ts'
import type { FlatParts } from '../support/agent-fixture.ts'

export class Life {
  /** Names of the points it has passed. */
  readonly passed: string[] = []
  readonly #endsAt: number | undefined
  readonly #end: () => void
  readonly #ended = Promise.withResolvers<void>()
  #over = false

  /** `endsAt`: from 1; absent: no end. `end` is called there, and may never return. */
  constructor(endsAt?: number, end: () => void = () => undefined) {
    this.#endsAt = endsAt
    this.#end = end
  }

  get over(): boolean {
    return this.#over
  }

  /** Resolves when it is over. */
  get ended(): Promise<void> {
    return this.#ended.promise
  }

  /** Resolves when the life continues; never when it has ended. */
  async point(name: string): Promise<void> {
    if (!this.pass(name)) await NEVER
  }

  /** False when the life has ended. */
  pass(name: string): boolean {
    if (!this.#over) this.passed.push(name)
    if (this.passed.length === this.#endsAt && !this.#over) {
      this.#over = true
      this.#end()
      this.#ended.resolve()
    }
    return !this.#over
  }

  /** Do `work` between two points. */
  async step<T>(name: string, work: () => Promise<T>): Promise<T> {
    await this.point(`before ${name}`)
    const result = await work()
    await this.point(`after ${name}`)
    return result
  }

  /** Only while it lives; no point of its own. */
  async alive<T>(work: () => Promise<T>): Promise<T> {
    if (this.#over) return NEVER
    const result = await work()
    return this.#over ? NEVER : result
  }
}

const NEVER = new Promise<never>(() => undefined)

/** Dependencies of sessions, for the time of this life. */
export function mortal(parts: FlatParts, life: Life): FlatParts {
  const { runCalls, sandbox, models } = parts
  return {
    ...parts,
    store: mortalStore(parts.store, life),
    models: {
      ...models,
      model: mortalModel(models.model, life),
      fallbacks: models.fallbacks?.map((model) => mortalModel(model, life)),
    },
    async *runCalls(calls, context) {
      const running = runCalls(calls, context)
      for (;;) {
        const next = await life.alive(() => running.next())
        if (next.done === true) return next.value
        // A settled group is a commit, with points of its own.
        if (isLive(next.value)) await life.point(`live ${next.value.sessionUpdate}`)
        yield next.value
      }
    },
    sandbox: async (userId, signal) => mortalSandbox(await life.alive(() => sandbox(userId, signal)), life),
  }
}

function mortalStore(store: SessionStore, life: Life): SessionStore {
  return during(
    store,
    {
      log: during(
        store.log,
        {
          takeOver: (id) => life.step('takeover', () => store.log.takeOver(id)),
          append: (id, events, effects, epoch) =>
            life.step(events.map(nameOf).join(' + '), () => store.log.append(id, events, effects, epoch)),
        },
        life,
      ),
      outputs: during(
        store.outputs,
        {
          append: (id, callId, offset, bytes, epoch) =>
            life.step('output', () => store.outputs.append(id, callId, offset, bytes, epoch)),
        },
        life,
      ),
    },
    life,
  )
}

function mortalModel(model: Model, life: Life): Model {
  return {
    ...model,
    async stream(request, signal, onPiece) {
      await life.point('before the request')
      const answer = await life.alive(() =>
        model.stream(request, signal, (piece) => {
          if (life.pass(`live ${piece.type}`)) onPiece(piece)
        }),
      )
      await life.point('the answer')
      return answer
    },
  }
}

function mortalSandbox(sandbox: Sandbox, life: Life): Sandbox {
  const { files } = sandbox
  return during(
    sandbox,
    {
      run: (request) => life.step('the start of the command', () => sandbox.run(request)),
      attach: (id, from) => life.step('the attach', () => sandbox.attach(id, from)),
      files: during(
        files,
        {
          write: (...args) => life.step('the write of the file', () => files.write(...args)),
        },
        life,
      ),
    },
    life,
  )
}

/** `target` with some methods replaced; the others answer only during the life. */
export function during<T extends object>(target: T, changes: Partial<T>, life: Life): T {
  return new Proxy(target, {
    get(_target, name) {
      if (Object.hasOwn(changes, name)) return Reflect.get(changes, name)
      const value: unknown = Reflect.get(target, name, target)
      if (typeof value !== 'function') return value
      return (...args: unknown[]) => life.alive(() => Promise.resolve(Reflect.apply(value, target, args)))
    },
  })
}

function nameOf(event: SessionEvent): string {
  return sandlotEventOf(event)?.type ?? (isOutcome(event) ? 'outcome' : event.sessionUpdate)
}
