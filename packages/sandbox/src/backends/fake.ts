import type { Duplex } from 'node:stream'

import type { BackendVolumes, OpenedSandbox, SandboxBackend } from '../backend.ts'
import { SandboxError } from '../errors.ts'
import type { SandboxLedger } from '../ledger.ts'
import { createLocalProcessBackend, type LocalProcessOptions } from './local-process.ts'

/** Methods with effects: a controller can die before or after each. */
const BACKEND_STEPS: readonly (keyof SandboxBackend)[] = [
  'create',
  'open',
  'stop',
  'pause',
  'resume',
  'claim',
  'remove',
]
const VOLUME_STEPS: readonly (keyof BackendVolumes)[] = ['ensure', 'remove']
const LEDGER_STEPS: readonly (keyof SandboxLedger)[] = [
  'add',
  'claim',
  'condemn',
  'nextGeneration',
  'release',
]

interface Step {
  /** `backend.create`, `volumes.remove`, `ledger.claim` … */
  verb: string
  /** Number of this step among this controller's, from 1. */
  count: number
}

/** Kills the controller before or after this step; `after`: the step still takes effect. */
export type FailPoint = (step: Step) => 'before' | 'after' | undefined

/** Parts of one controller. After its death every method rejects and changes nothing. */
export interface FakeController {
  backend: SandboxBackend
  ledger: SandboxLedger
  /** Number of steps so far. */
  steps(): number
  dead(): boolean
  /** Dies now: streams end, nothing is cleaned up. */
  crash(): void
}

/**
 * An engine in memory that outlives its controllers: real sbxd processes and folders, and a fail
 * point at every step.
 */
export interface FakeEngine {
  /** For an operator, who never dies. */
  backend: SandboxBackend
  controller(ledger: SandboxLedger, failPoint?: FailPoint): FakeController
}

/** For tests of users of sandboxes. Isolates nothing, see `createLocalProcessBackend`. */
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
      /** Passes every method of `target` on while the controller lives. */
      const mortal = <T extends object>(target: T, what: string, steps: readonly (keyof T)[]): T =>
        new Proxy(target, {
          get(of, name) {
            const method: unknown = Reflect.get(of, name)
            if (typeof method !== 'function') return method
            return async (...args: unknown[]): Promise<unknown> => {
              check()
              const isStep = steps.some((known) => known === name)
              if (isStep) count += 1
              const when = isStep ? failPoint({ verb: `${what}.${String(name)}`, count }) : undefined
              if (when === 'before') crash()
              check()
              const result: unknown = await Reflect.apply(method, of, args)
              if (when === 'after') crash()
              if (dead && isOpened(result)) result.stream.destroy()
              check()
              if (isOpened(result)) streams.add(result.stream)
              return result
            }
          },
        })
      const inventory = {
        ...backend.inventory,
        volumes: mortal(backend.inventory.volumes, 'volumes', VOLUME_STEPS),
        // Closing belongs to the engine, which other controllers use.
        close: async () => {},
      }
      return {
        backend: mortal(
          { ...backend, inventory: mortal(inventory, 'inventory', []) },
          'backend',
          BACKEND_STEPS,
        ),
        ledger: mortal(ledger, 'ledger', LEDGER_STEPS),
        steps: () => count,
        dead: () => dead,
        crash,
      }
    },
  }
}

function isOpened(value: unknown): value is OpenedSandbox {
  return typeof value === 'object' && value !== null && 'stream' in value
}
