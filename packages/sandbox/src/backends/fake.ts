import type { Duplex } from 'node:stream'

import type { SandboxBackend } from '../backend.ts'
import { SandboxError } from '../errors.ts'
import type { SandboxLedger } from '../ledger.ts'
import { createLocalProcessBackend, type LocalProcessOptions } from './local-process.ts'

/** What changes something, and is therefore a step that a controller can die at. */
const STEPS = [
  'create',
  'start',
  'stop',
  'pause',
  'resume',
  'rename',
  'remove',
  'removeVolume',
  'openStream',
  'add',
  'claim',
  'condemn',
  'nextGeneration',
  'release',
] as const

export interface Step {
  verb: (typeof STEPS)[number]
  /** The how many-th step of this controller, from 1. */
  count: number
}

/** Whether a controller dies at this step, and if it does, whether the step itself still happens. */
export type FailPoint = (step: Step) => 'before' | 'after' | undefined

/** One controller's hands. Once it is dead, everything it does rejects and changes nothing. */
export interface FakeController {
  backend: SandboxBackend
  ledger: SandboxLedger
  /** How many steps it has taken. */
  steps(): number
  dead(): boolean
  /** Die now, in the middle of everything: streams end, nothing is tidied up. */
  crash(): void
}

/** An engine in memory that outlives the controllers: real sbxd processes and folders, and a fail point at every step. */
export interface FakeEngine {
  /** As an operator, who never dies. */
  backend: SandboxBackend
  controller(ledger: SandboxLedger, failPoint?: FailPoint): FakeController
}

/** For tests of what uses sandboxes. It isolates nothing, see `createLocalProcessBackend`. */
export function createFakeEngine(options: Omit<LocalProcessOptions, 'freezes'>): FakeEngine {
  const backend = createLocalProcessBackend({ ...options, freezes: true })
  return {
    backend,
    controller(ledger, failPoint = () => undefined) {
      const streams = new Set<Duplex>()
      let dead = false
      let count = 0
      const crash = (): void => {
        dead = true
        for (const stream of streams) stream.destroy()
      }
      const check = (): void => {
        if (dead) throw new SandboxError('engine_unavailable', 'This controller is dead.')
      }
      /** Every method of `target`, as long as the controller lives. */
      const mortal = <T extends object>(target: T): T =>
        new Proxy(target, {
          get(of, name) {
            const method: unknown = Reflect.get(of, name)
            if (typeof method !== 'function') return method
            return async (...args: unknown[]): Promise<unknown> => {
              check()
              const verb = STEPS.find((known) => known === name)
              if (verb) count += 1
              const when = verb && failPoint({ verb, count })
              if (when === 'before') crash()
              check()
              const result: unknown = await Reflect.apply(method, of, args)
              if (when === 'after') crash()
              if (dead && isStream(result)) result.destroy()
              check()
              if (isStream(result)) streams.add(result)
              return result
            }
          },
        })
      return {
        // Closing belongs to the engine, which other controllers use.
        backend: mortal({ ...backend, close: async () => {} }),
        ledger: mortal(ledger),
        steps: () => count,
        dead: () => dead,
        crash,
      }
    },
  }
}

function isStream(value: unknown): value is Duplex {
  return typeof value === 'object' && value !== null && 'destroy' in value
}
