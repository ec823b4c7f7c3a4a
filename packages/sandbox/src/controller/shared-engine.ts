import { SandboxError } from '../errors.ts'

/** What is this controller's, of an engine and a ledger that several share. Asked each time. */
export interface SharedEngine {
  /** Whether the container of this user is this controller's to connect to, pause and stop. */
  owns(userId: string): boolean
  /** Whether it keeps the pool, which all take from, and removes what has no owner. */
  leads(): boolean
  /**
   * Resolves with whether this user is this controller's, or now becomes it because they are no
   * other one's. Asked where another controller has taken the sandbox over.
   */
  claim(userId: string): Promise<boolean>
  /**
   * Of these users, of whom something runs or is paused whose controller may have ended: those who
   * are this controller's, and its part of those who are no one's, who become it. The other
   * controllers take theirs with their own looks.
   */
  takeOver(userIds: readonly string[]): Promise<ReadonlySet<string>>
  /** Whether another controller that lives owns this user; without an id: whether it leads. */
  isElsewhere(userId: string | undefined): Promise<boolean>
  /** The host is full, and nothing of ours is idle: others may stop one that is. */
  askForRoom(): Promise<void>
  /**
   * Called once. For a user who is another controller's from now on the stream is closed and
   * nothing is stopped: commands go on, and the other one attaches to them. What is under way
   * rejects with `fenced`, also an `acquire`.
   */
  onLost(lost: (userId: string) => void): void
}

/** The one controller of its engine. */
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
export function anothersError(): SandboxError {
  return new SandboxError('fenced', 'This sandbox is another controller’s now.')
}
