/**
 * Access to a session: everything for its owner, the shares' permissions for others. Looked up for
 * every request, so that a revoked share ends at once.
 */
import type { AgentUser } from '@sandlot/shared/account/agent-user'
import { SandlotError } from '@sandlot/shared/base/errors'
import { type Mode, MODES } from '@sandlot/shared/chat/mode'
import type { Author } from '@sandlot/shared/chat/shares'
import { type ReaderOf, type SharedAccess, accessBy } from '@sandlot/storage/shares/shares'
import type { SessionStore } from '@sandlot/storage/sessions/store'

/** A user, as far as access goes. */
export type Actor = Pick<AgentUser, 'id' | 'name' | 'teams'> & Partial<Pick<AgentUser, 'role'>>

export type Access = 'owner' | SharedAccess

/**
 * The right that a request needs. `read`: the transcript, its outputs and pending approvals.
 * `take_part`: write, comment, stop. `approve`: answer approvals; to change a call or have an
 * answer remembered both. `own`: everything else.
 */
export type Right = 'read' | 'take_part' | 'approve' | 'own'

const REFUSALS: Record<Exclude<Right, 'read'>, string> = {
  take_part: 'You may watch this chat. Its owner can let you take part.',
  approve: 'Only the owner of this chat, and people named for it, answer approvals.',
  own: 'Only the owner of this chat can do this.',
}

/** Undefined: the user does not see the session. */
export async function accessTo(
  { shares }: Pick<SessionStore, 'shares'>,
  session: { id: string; userId: string },
  who: ReaderOf,
  now: number,
): Promise<Access | undefined> {
  if (session.userId === who.id) return 'owner'
  return accessBy(await shares.of(session.id), who, now)
}

/** Throws `forbidden`. */
export function requireRight(access: Access, right: Right): void {
  if (access === 'owner' || right === 'read') return
  const has = right === 'approve' ? access.mayApprove : right === 'take_part' && access.access === 'take_part'
  if (!has) throw new SandlotError('forbidden', REFUSALS[right])
}

/** The actor's name in the log. Undefined: a user without a name, who can only be the owner. */
export function authorOf({ id, name }: Actor): Author | undefined {
  return name === undefined ? undefined : { id, name }
}

/** Terms of a message that is not the owner's. */
export interface OnBehalf {
  /** The highest mode of the prompt that it becomes. */
  modeCeiling?: Mode | undefined
  /** The user whose limits and usage it counts for; absent: the owner. */
  chargedTo?: string | undefined
}

/**
 * The ceiling of messages that become one prompt: the lowest of any; undefined where all are the
 * owner's.
 */
export function lowestCeiling(messages: readonly OnBehalf[]): Mode | undefined {
  const ceilings = messages.flatMap(({ modeCeiling }) =>
    modeCeiling === undefined ? [] : [MODES.indexOf(modeCeiling)],
  )
  return ceilings.length === 0 ? undefined : MODES[Math.min(...ceilings)]
}

/** A guest has no limits of their own: what they ask counts for the owner. */
export function onBehalfOf({ id, role }: Actor, access: Access): OnBehalf {
  if (access === 'owner') return {}
  return { modeCeiling: access.mode, chargedTo: role === 'guest' ? undefined : id }
}
