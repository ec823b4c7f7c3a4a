/** One slot: where one user's commands run and files stay. The engine knows what exists, the ledger whose it is. */
export interface LedgerSlot {
  /** `[a-z0-9]{8}`, random. */
  slot: string
  /** `warm` = in the pool, never claimed. */
  state: 'warm' | 'claimed'
  /** Set when claimed. */
  userId?: string
  uid: number
  volume: string
  /** Grows with every container made for this slot; part of the container's name. */
  generation: number
  createdAt: number
  claimedAt?: number
}

/** Whose a sandbox is. ai-agent passes the one in its store; a library user may take the file implementation. */
export interface SandboxLedger {
  /** The slot of this user, if any. */
  find(userId: string): Promise<LedgerSlot | undefined>
  /** Record a slot before its first container is created. Rejects if slot or uid is taken. */
  add(slot: LedgerSlot): Promise<void>
  /** One transaction: this slot now belongs to this user. Returns the user's existing slot if there is one already. */
  claim(slot: string, userId: string): Promise<LedgerSlot>
  /** Add one to the slot's generation and return it. */
  nextGeneration(slot: string): Promise<number>
  /** Forget a slot whose volume a person removed. */
  release(slot: string): Promise<void>
  list(): Promise<LedgerSlot[]>
  /** A number that grows with every call, for fencing controllers: never the same twice, also over restarts. */
  nextEpoch(): Promise<number>
}
