/**
 * One slot: where one user's commands run and files are stored. The engine is the truth about what
 * exists, the ledger about its owner.
 */
export interface LedgerSlot {
  /** `[a-z0-9]{8}`, random. */
  slot: string
  /**
   * `warm` = in the pool, never claimed. `condemned` = was warm and is being removed with its
   * unused volume.
   */
  state: 'warm' | 'claimed' | 'condemned'
  /** Set when claimed. */
  userId?: string
  uid: number
  volume: string
  /**
   * Number of the slot's newest container, created or only planned; part of its name. 0: none yet.
   * A claimed slot's grows only after its volume was created, so that from 1 on an absent volume is
   * a missing one.
   */
  generation: number
  createdAt: number
  claimedAt?: number
}

/**
 * Owners of sandboxes. ai-agent passes the ledger of its store; a library user may use the file
 * implementation.
 */
export interface SandboxLedger {
  /** The slot of this user, if any. */
  find(userId: string): Promise<LedgerSlot | undefined>
  /**
   * Records a slot before its first container is created. Rejects with `exists` if slot, uid,
   * volume or user is recorded already, and with `limit_reached` if it is warm and `mostWarm`
   * others are.
   */
  add(slot: LedgerSlot, mostWarm?: number): Promise<void>
  /**
   * One transaction: assigns this warm slot to this user and increments its generation. Returns the
   * user's existing slot unchanged if there is one. Rejects with `exists` when it is not warm,
   * `not_found` when it is absent.
   */
  claim(slot: string, userId: string): Promise<LedgerSlot>
  /**
   * One transaction: a warm slot becomes condemned. False when it is claimed or absent, true when
   * it is condemned already.
   */
  condemn(slot: string): Promise<boolean>
  /**
   * The generation after `after`, the newest one that the caller has seen: the slot's own when that
   * is greater, else `after` + 1, which is stored. So controllers that create a container at the
   * same time create the same one.
   */
  nextGeneration(slot: string, after: number): Promise<number>
  /** Removes a slot whose volume was removed on a person's request. */
  release(slot: string): Promise<void>
  list(): Promise<LedgerSlot[]>
  /**
   * Increases with every call, also across restarts, for fencing controllers. At least the time in
   * epoch milliseconds, so that a lost or restored ledger does not lock us out of running
   * sandboxes; and greater than `above`, an epoch that a sandbox has seen.
   */
  nextEpoch(above?: number): Promise<number>
}
