import { SandboxError } from '../errors.ts'

/**
 * A controller's share of an engine and a ledger that several use. Its answers may change at any
 * time.
 */
export interface SharedEngine {
  /** This user's container is this controller's to connect to, pause and stop. */
  owns(userId: string): boolean
  /** This controller keeps the pool, from which all take, and removes ownerless containers. */
  leads(): boolean
  /**
   * Resolves with true if this user is this controller's, or becomes so for lack of another owner.
   * Called when another controller has taken the sandbox over.
   */
  claim(userId: string): Promise<boolean>
  /**
   * These users have running or paused containers whose controller may have ended. Resolves with
   * this controller's own, and its part of the ownerless ones, which become its own. Other
   * controllers take theirs by their own checks.
   */
  takeOver(userIds: readonly string[]): Promise<ReadonlySet<string>>
  /** Another live controller owns this user; without an id: it leads. */
  isElsewhere(userId: string | undefined): Promise<boolean>
  /** The host is full, and nothing of ours is idle: others may stop an idle one. */
  askForRoom(): Promise<void>
  /**
   * Called once, with a function to call for a user who becomes another controller's. Their stream
   * is closed and nothing is stopped: commands keep running, and the other controller attaches to
   * them. Pending work rejects with `fenced`, also an `acquire`.
   */
  onLost(lost: (userId: string) => void): void
}

/** The only controller of its engine. */
export const ALONE: SharedEngine = {
  owns: () => true,
  leads: () => true,
  claim: async () => true,
  takeOver: async (userIds) => new Set(userIds),
  isElsewhere: async () => false,
  askForRoom: async () => {},
  onLost: () => {},
}

/** For a user whose sandbox is another controller's. */
export function ownedElsewhere(): SandboxError {
  return new SandboxError('fenced', 'This sandbox is another controller’s now.')
}
