/** People's sandboxes: who may have one, what starts with it, and what it reaches. */
import { SandboxError } from '@sandlot/sandbox/errors'
import type { Sandbox } from '@sandlot/sandbox/sandbox'
import { SANDLOT } from '@sandlot/shared/admin/audit'
import { FileWatches } from '../acp/file-watches.ts'
import { Starting } from '../acp/starting.ts'
import type { AgentConfig } from '../config/config.ts'
import { userNetwork } from '../config/network.ts'
import type { Log } from '../log.ts'
import type { Tracing } from '../metrics/tracing.ts'
import { claimSandbox, sharedEngine } from '../replicas/ownership.ts'
import { openSandboxes } from '../config/sandbox-backend.ts'
import type { AgentStores } from './stores.ts'

const GUEST_HAS_NONE = 'Guests have no sandbox of their own.'

export type PersonSandboxes = Awaited<ReturnType<typeof openSandboxes>> & {
  network: ReturnType<typeof userNetwork>
  starting: Starting
  watches: FileWatches
}

export async function openPersonSandboxes(
  config: AgentConfig,
  log: Log,
  { keys, store, replica, ownership, audit, people, removals, rules, personal }: AgentStores,
  tracing: Tracing | undefined,
): Promise<PersonSandboxes> {
  const network = userNetwork(config.sandbox.network, config.file.rules?.hosts === 'ask', personal, rules)
  const sandboxes = await openSandboxes(config, keys, store.ledger, log, {
    share: replica && sharedEngine(replica, store.replicas),
    ofUsers: network.options,
    emailOf: (userId) => people.emailOf(userId),
    refused: (userId, host, reason) => {
      const who = { id: userId, name: people.emailOf(userId) ?? userId }
      const line = { who, what: 'host_refused', whom: { name: host }, after: { reason } } as const
      const others = { who: SANDLOT, what: 'host_refused', whom: { name: 'other hosts' } } as const
      audit.count(`${userId} ${host} ${reason}`, line, others)
    },
  })
  // Never rejects.
  void sandboxes.maintain()
  const starting = new Starting()
  const watches = new FileWatches({ connected: (userId) => sandboxes.connected(userId), log })
  const started = async (userId: string, signal?: AbortSignal): Promise<Sandbox> => {
    if (tracing === undefined || (await sandboxes.connected(userId)) !== undefined)
      return sandboxes.acquire(userId, signal)
    return tracing.sandboxStart(userId, sandboxes.acquire(userId, signal))
  }
  const claimed = async (userId: string, signal?: AbortSignal): Promise<Sandbox> => {
    await claimSandbox(ownership, userId)
    const sandbox = await started(userId, signal)
    watches.awake(userId, sandbox)
    return sandbox
  }
  return {
    ...sandboxes,
    network,
    starting,
    watches,
    acquire(userId, signal) {
      const refusal = removals.has(userId)
        ? 'The account of this user was removed.'
        : people.get(userId)?.role === 'guest'
          ? GUEST_HAS_NONE
          : undefined
      return refusal === undefined
        ? starting.during(userId, claimed(userId, signal))
        : Promise.reject(new SandboxError('cancelled', refusal))
    },
  }
}
