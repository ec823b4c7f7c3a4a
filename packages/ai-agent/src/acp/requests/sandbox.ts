/**
 * `_sandlot/sandbox`: a person's own sandbox as a whole; `_sandlot/sandboxes`: everybody's, for
 * administrators. For our own service.
 */
import type { SandboxStat } from '@sandlot/sandbox/sandbox'
import { EXT } from '@sandlot/shared/acp/meta'
import type { AgentUser } from '@sandlot/shared/account/agent-user'
import type { SandboxUse, SandboxView } from '@sandlot/shared/workspace/sandbox'
import type { AgentSandboxes, SandboxUses } from '@sandlot/shared/admin/sandboxes'
import { actorOf } from '../actor.ts'
import type { AdminParts, ProtocolParts, SandboxAdmin, WorkspaceParts } from '../parts.ts'
import type { ExtensionHandlers } from '../handler-context.ts'
import { withSandboxErrors } from '../sandbox-error.ts'

const STATES = {
  absent: 'none',
  removing: 'none',
  created: 'starting',
  running: 'ready',
  paused: 'resting',
  stopped: 'stopped',
} as const

function useOf(stat: SandboxStat): SandboxUse {
  return {
    cpuMs: stat.load.cpuMs,
    memory: { used: stat.memory.bytes, limit: stat.memory.limit },
    processes: { used: stat.processes.count, limit: stat.processes.limit },
    disk: { used: stat.disk.bytes, limit: stat.disk.budget.bytes || undefined },
    scratch: { used: stat.scratch.bytes, limit: stat.scratch.limit },
    commands: stat.load.commands,
  }
}

export function sandboxRequests(parts: AdminParts & ProtocolParts & WorkspaceParts) {
  const { shell, settings, audit, log } = parts
  const view = async ({ sandboxes, starting, limits }: SandboxAdmin, user: AgentUser) => {
    const { state, connected, stat, steps, image: made } = await sandboxes.status(user.id)
    const { network } = settings.effective(user)
    const isReady = state === 'running' && connected
    return {
      state: isReady ? 'ready' : starting.has(user.id) || state === 'running' ? 'starting' : STATES[state],
      image: made ?? (await sandboxes.imageName()),
      steps: [...(steps ?? [])],
      cpus: limits.cpus,
      use: stat && useOf(stat),
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
    [EXT.sandbox]: async ({ params: { user, ask } }): Promise<object> => {
      const { sandboxAdmin } = shell
      return withSandboxErrors(async () => {
        switch (ask.do) {
          case 'view':
            return view(sandboxAdmin, user)
          case 'reset':
          case 'stop':
            log.info({ userId: user.id }, `a person’s ${ask.do} of their sandbox`)
            await sandboxAdmin.sandboxes[ask.do](user.id)
            await audit.write({
              ...actorOf(user),
              what: ask.do === 'reset' ? 'sandbox_reset' : 'sandbox_stopped',
            })
            return {}
          case 'jobs':
            return { jobs: await sandboxAdmin.jobs.list(user.id) }
          case 'output':
            return { text: await sandboxAdmin.jobs.output(user.id, ask.id) }
          case 'end':
            log.info({ userId: user.id, command: ask.id }, 'a person ended a background command')
            await sandboxAdmin.jobs.end(user.id, ask.id)
            return {}
        }
      })
    },
  } satisfies Partial<ExtensionHandlers>
}

// ── Everybody's, for administrators ─────────────────────────────────────────────────────────────

/** So many are measured at once. */
const MEASURED_AT_ONCE = 8

export function sandboxesRequests({
  shell,
  ownership,
  audit,
  log,
}: AdminParts & ProtocolParts & WorkspaceParts) {
  return {
    [EXT.sandboxes]: async ({ params: { user, ask } }): Promise<object> => {
      const { sandboxAdmin } = shell
      return withSandboxErrors(async () => {
        switch (ask.do) {
          case 'list':
            return listAll(sandboxAdmin)
          case 'use':
            return measure(sandboxAdmin, ask.userIds)
          case 'reset':
          case 'stop': {
            await ownership?.claim(ask.userId)
            log.info({ by: user.id, userId: ask.userId }, `an administrator’s ${ask.do} of a sandbox`)
            const missing =
              ask.do === 'reset'
                ? await sandboxAdmin.sandboxes.reset(ask.userId, 'replace')
                : await sandboxAdmin.sandboxes.stop(ask.userId)
            await audit.write({
              ...actorOf(user),
              what: ask.do === 'reset' ? 'sandbox_reset' : 'sandbox_stopped',
              whom: { id: ask.userId },
              ...(missing === undefined
                ? {}
                : { before: { missingVolume: missing }, after: { workspace: 'new' } }),
            })
            return {}
          }
        }
      })
    },
  } satisfies Partial<ExtensionHandlers>
}

async function listAll({ sandboxes, starting, limits }: SandboxAdmin): Promise<AgentSandboxes> {
  const [all, image] = await Promise.all([sandboxes.workspaces(), sandboxes.imageName()])
  const rows = all.flatMap(({ userId, since, container }) =>
    userId === undefined
      ? []
      : [
          {
            userId,
            since,
            state: starting.has(userId) ? ('starting' as const) : STATES[container?.state ?? 'absent'],
          },
        ],
  )
  return {
    image,
    limits: {
      cpus: limits.cpus,
      memory: limits.memoryBytes,
      processes: limits.pids,
      disk: limits.diskBytes,
    },
    sandboxes: rows.toSorted((a, b) => (b.since ?? 0) - (a.since ?? 0)),
    warm: all.filter(({ owner }) => owner === 'warm').length,
    ownerless: all.filter(({ owner }) => owner === 'nobody').map(({ volume }) => volume),
  }
}

/** One that does not answer is missing, as one that is not awake. */
async function measure({ sandboxes }: SandboxAdmin, userIds: readonly string[]): Promise<SandboxUses> {
  const uses: SandboxUses['uses'] = {}
  const waiting = [...new Set(userIds)]
  const work = async (): Promise<void> => {
    for (let userId = waiting.pop(); userId !== undefined; userId = waiting.pop()) {
      const stat = await sandboxes.status(userId).then(
        (status) => status.stat,
        () => undefined,
      )
      if (stat !== undefined) uses[userId] = useOf(stat)
    }
  }
  await Promise.all(Array.from({ length: MEASURED_AT_ONCE }, work))
  return { uses }
}
