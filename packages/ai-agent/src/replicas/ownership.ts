/**
 * Which people this ai-agent has: all of them where it is the only one, otherwise those that it has
 * claimed in the database.
 */
import { SandboxError } from '@sandlot/sandbox/errors'
import type { SandboxesOptions } from '@sandlot/sandbox/sandboxes'
import { SandlotError } from '@sandlot/shared/base/errors'
import { ledgerFailure } from '@sandlot/storage/replicas/ledger'
import {
  type Replica as Known,
  type ReplicaReads,
  type ReplicaRequests,
  SCHEDULES,
} from '@sandlot/storage/replicas/replicas'

export interface Ownership {
  /** Claims this person. Throws `not_owner` where a living replica has them. Cheap when ours. */
  claim(userId: string): Promise<void>
  /** `claim`, asked of the database now. False: another replica has them. */
  confirm(userId: string): Promise<boolean>
  /** True if they are ours as far as is known; no query. */
  has(userId: string): boolean
  /** True if this replica runs the schedules of the deployment. */
  leads(): boolean
  /** Called with each person who is ours no longer. */
  onLost(listener: (userId: string) => void): void
  /**
   * `reload` is called when another agent has changed what is stored of this kind: with whose it
   * is, or undefined where that is not known. What changed before the call is reloaded at once.
   */
  onChange(what: string, reload: Reload): void
}

export type Reload = (id: string | undefined) => void | Promise<void>

/** Another ai-agent has this person, or none may have them just now. */
export class NotOwnerError extends SandlotError {
  /** Id of the replica that has them. Undefined: none has. */
  readonly replica: string | undefined

  constructor(replica: string | undefined) {
    super('not_owner', 'Another agent has taken over. Try again in a moment.')
    this.replica = replica
  }
}

/** The ownership of a deployment's only ai-agent. */
export function soleOwner(): Ownership {
  return {
    claim: () => Promise.resolve(),
    confirm: () => Promise.resolve(true),
    has: () => true,
    leads: () => true,
    onLost: () => undefined,
    onChange: () => undefined,
  }
}

// ── What goes by it

/** Which sandboxes are this agent's, where several share an engine. */
export function sharedEngine(
  ownership: Ownership & { readonly id: string },
  replicas: ReplicaReads & Pick<ReplicaRequests, 'announce'>,
): NonNullable<SandboxesOptions['share']> {
  /** People without an owner at the last poll. */
  const before = new Set<string>()
  return {
    owns: (userId) => ownership.has(userId),
    leads: () => ownership.leads(),
    // Most that run are another living one's: a look changes nothing in the database.
    claim: async (userId) =>
      (ownership.has(userId) || (await replicas.ownerOf(userId)) === undefined) && ownership.confirm(userId),
    async takeOver(userIds) {
      const free = await replicas.freeOf(userIds.filter((userId) => !ownership.has(userId)))
      const part = new Set(free.length === 0 ? [] : partOf(ownership.id, free, await replicas.list()))
      // Those whom another one should have taken since.
      if (ownership.leads()) for (const userId of free) if (before.has(userId)) part.add(userId)
      for (const userId of userIds) before.delete(userId)
      for (const userId of free) before.add(userId)
      await Promise.all([...part].map((userId) => ownership.confirm(userId)))
      return new Set(userIds.filter((userId) => ownership.has(userId)))
    },
    isElsewhere: async (userId = SCHEDULES) =>
      !ownership.has(userId) && (await replicas.ownerOf(userId)) !== undefined,
    async askForRoom() {
      try {
        await replicas.announce('room')
      } catch (error) {
        throw ledgerFailure(error)
      }
    },
    onLost: (lost) => ownership.onLost(lost),
  }
}

/**
 * The people without an owner that fall to this replica, so that each has as many in the end. All
 * replicas that poll at the same moment compute the same parts.
 */
function partOf(id: string, free: readonly string[], all: readonly Known[]): string[] {
  const open = all.filter(({ living, draining }) => living && !draining)
  const total = open.reduce((sum, { people }) => sum + people, free.length)
  const each = Math.ceil(total / Math.max(1, open.length))
  let from = 0
  for (const replica of open) {
    const to = from + Math.max(0, each - replica.people)
    if (replica.id === id) return free.toSorted().slice(from, to)
    from = to
  }
  return []
}

/** Before a sandbox of this person is used. Throws a `SandboxError`. */
export async function claimSandbox(ownership: Ownership, userId: string): Promise<void> {
  try {
    await ownership.claim(userId)
  } catch (error) {
    if (error instanceof NotOwnerError) throw new SandboxError('fenced', error.message, { cause: error })
    throw ledgerFailure(error)
  }
}

/** True if another agent applies retention to the chats of this person. */
export function isElsewhere(
  ownership: Ownership,
  replicas: Pick<ReplicaReads, 'ownerOf'>,
): (userId: string) => Promise<boolean> {
  return async (userId) =>
    !ownership.has(userId) && (!ownership.leads() || (await replicas.ownerOf(userId)) !== undefined)
}
