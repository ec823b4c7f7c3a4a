/**
 * Which people this ai-agent has: all of them where it is the only one, otherwise those that it has
 * claimed in the database.
 */
import { SandlotError } from '@sandlot/shared/errors'

export interface Ownership {
  /** Claims this person. Throws `not_owner` where a living replica has them. Cheap when ours. */
  claim(userId: string): Promise<void>
  /** As `claim`, asked of the database now. False: another replica has them. */
  confirm(userId: string): Promise<boolean>
  /** Whether they are ours as far as is known; no query. */
  has(userId: string): boolean
  /** Whether this replica runs the schedules of the deployment. */
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

/** Of the only ai-agent of a deployment. */
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
