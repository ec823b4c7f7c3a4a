/** `_sandlot/sandbox`: a person's own sandbox as a whole, for our own service. */
import type { Sandboxes } from '@sandlot/sandbox/sandboxes'
import { type AgentUser, EXT } from '@sandlot/shared/acp-meta'
import { type SandboxView, sandboxParams } from '@sandlot/shared/desk/sandbox'
import { SandlotError } from '@sandlot/shared/errors'
import type { PersonJobs } from '../../tools/background/person-jobs.ts'
import { actorOf } from '../actor.ts'
import { parseParams } from '../errors.ts'
import type { AcpServerParts, ExtensionHandlers } from '../handler-context.ts'
import { withSandboxErrors } from '../sandbox-error.ts'

export interface SandboxDesk {
  sandboxes: Pick<Sandboxes, 'status' | 'reset' | 'stop'>
  starting: Starting
  jobs: PersonJobs
  image: string
  cpus: number
}

/** Whose sandbox is being waited for. */
export class Starting {
  readonly #waiting = new Map<string, number>()

  has(userId: string): boolean {
    return this.#waiting.has(userId)
  }

  /** As `acquired`, for which this user waits until it settles. */
  async during<T>(userId: string, acquired: Promise<T>): Promise<T> {
    this.#waiting.set(userId, (this.#waiting.get(userId) ?? 0) + 1)
    try {
      return await acquired
    } finally {
      const left = (this.#waiting.get(userId) ?? 1) - 1
      if (left > 0) this.#waiting.set(userId, left)
      else this.#waiting.delete(userId)
    }
  }
}

const STATES = {
  absent: 'none',
  removing: 'none',
  created: 'starting',
  running: 'ready',
  paused: 'resting',
  stopped: 'stopped',
} as const

export function sandboxRequests(parts: AcpServerParts): ExtensionHandlers {
  const { shell, settings, audit, log } = parts
  const view = async ({ sandboxes, starting, image, cpus }: SandboxDesk, user: AgentUser) => {
    const { state, connected, stat } = await sandboxes.status(user.id)
    const { network } = settings?.effective(user) ?? {}
    const isReady = state === 'running' && connected
    return {
      state: isReady ? 'ready' : starting.has(user.id) || state === 'running' ? 'starting' : STATES[state],
      image,
      cpus,
      use: stat && {
        cpuMs: stat.load.cpuMs,
        memory: { used: stat.memory.bytes, limit: stat.memory.limit },
        processes: { used: stat.processes.count, limit: stat.processes.limit },
        disk: { used: stat.disk.bytes, limit: stat.disk.budget.bytes || undefined },
        scratch: { used: stat.scratch.bytes, limit: stat.scratch.limit },
        commands: stat.load.commands,
      },
      network: {
        mode: network?.mode.value ?? 'none',
        hosts: network?.hosts.value ?? [],
        ask: network?.ask.value ?? false,
      },
      allowed: {
        terminal: shell?.mayUse(user.id, 'terminal') ?? false,
        exec: shell?.mayUse(user.id, 'exec') ?? false,
      },
    } satisfies SandboxView
  }
  return {
    [EXT.sandbox]: async ({ params, connection }): Promise<object> => {
      const { user, ask } = parseParams(sandboxParams, params, EXT.sandbox)
      if (!connection.ours || shell === undefined)
        throw new SandlotError('not_implemented', 'There are no sandboxes here.')
      if (user.role === 'guest') throw new SandlotError('forbidden', 'Guests have no sandbox of their own.')
      const { desk } = shell
      return withSandboxErrors(async () => {
        switch (ask.do) {
          case 'view':
            return view(desk, user)
          case 'reset':
          case 'stop':
            log.info({ userId: user.id }, `a person’s ${ask.do} of their sandbox`)
            await desk.sandboxes[ask.do](user.id)
            await audit?.write({
              ...actorOf(user),
              what: ask.do === 'reset' ? 'sandbox_reset' : 'sandbox_stopped',
            })
            return {}
          case 'jobs':
            return { jobs: await desk.jobs.list(user.id) }
          case 'output':
            return { text: await desk.jobs.output(user.id, ask.id) }
          case 'end':
            log.info({ userId: user.id, command: ask.id }, 'a person ended a background command')
            await desk.jobs.end(user.id, ask.id)
            return {}
        }
      })
    },
  }
}
