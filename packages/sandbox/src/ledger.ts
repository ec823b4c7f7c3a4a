/**
 * One slot: where one user's commands run and files stay. The engine knows what exists, the ledger
 * whose it is.
 */
export interface LedgerSlot {
  /** `[a-z0-9]{8}`, random. */
  slot: string
  /**
   * `warm` = in the pool, never claimed. `condemned` = was warm, can never be claimed any more: it
   * is being removed with its unused volume.
   */
  state: 'warm' | 'claimed' | 'condemned'
  /** Set when claimed. */
  userId?: string
  uid: number
  volume: string
  /**
   * Of the newest container that was decided on for this slot, made or not; part of its name. 0:
   * none yet. Of a claimed slot it grows only after its volume was made, so that from 1 on a volume
   * that is not there is missing.
   */
  generation: number
  createdAt: number
  claimedAt?: number
}

/**
 * Whose a sandbox is. ai-agent passes the one in its store; a library user may take the file
 * implementation.
 */
export interface SandboxLedger {
  /** The slot of this user, if any. */
  find(userId: string): Promise<LedgerSlot | undefined>
  /**
   * Record a slot before its first container is created. Rejects with `exists` if slot, uid, volume
   * or user is in it, and with `limit_reached` if it is warm and `mostWarm` others are.
   */
  add(slot: LedgerSlot, mostWarm?: number): Promise<void>
  /**
   * One transaction: this warm slot now belongs to this user, and one is added to its generation.
   * Returns the user's existing slot as it is if there is one. Rejects with `exists` when it is not
   * warm, `not_found` when not there.
   */
  claim(slot: string, userId: string): Promise<LedgerSlot>
  /**
   * One transaction: a warm slot becomes condemned. False when it is claimed or not there, true
   * when it is condemned.
   */
  condemn(slot: string): Promise<boolean>
  /**
   * The generation of the container that comes after `after`, the newest that the caller has seen:
   * the slot's own when it is greater, else `after` + 1, which it then is. So controllers that make
   * a container at once make the same one.
   */
  nextGeneration(slot: string, after: number): Promise<number>
  /** Forget a slot whose volume a person removed. */
  release(slot: string): Promise<void>
  list(): Promise<LedgerSlot[]>
  /**
   * A number that grows with every call, for fencing controllers: never the same twice, also over
   * restarts. At least the time in epoch milliseconds, so that a ledger that was lost or restored
   * does not lock us out of what runs; and greater than `above`, which a sandbox has seen.
   */
  nextEpoch(above?: number): Promise<number>
}
