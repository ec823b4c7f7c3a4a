/**
 * The open chat sockets: sends frames to all tabs of a user, and closes those whose sign-in or key
 * has ended.
 */
import type { Account } from '@sandlot/shared/account/api'
import type { ServerFrame } from '@sandlot/shared/chat/frames'
import { z } from 'zod'
import type { Caller } from '../auth/caller.ts'

export interface OpenSocket {
  /** The id of a sign-in may change. */
  caller: Caller
  send(frame: ServerFrame): void
  close(code: number, reason: string): void
}

/** Close codes of our own (4000–4999). */
export const CLOSE = {
  goingAway: 1001,
  tooLarge: 1009,
  /** The sign-in or the key has ended: do not reconnect with it. */
  signedOut: 4401,
  /** Read too slowly: reconnect and resume. */
  slowReader: 4008,
  /** The person's permissions have changed: reconnect and resume. */
  personChanged: 4009,
} as const

/** Tabs of one user; more are a fault of the client. */
export const MAX_SOCKETS_PER_USER = 50

/** Events that end, or restart, a person's sockets, at whichever service they are. */
export const endedForSockets = z.discriminatedUnion('what', [
  z.object({ what: z.literal('sign_in_ended'), signInId: z.string() }),
  z.object({
    what: z.literal('sign_ins_ended'),
    userId: z.string(),
    /** But for one whose id may change. */
    goesOn: z.object({ was: z.string(), is: z.string() }).optional(),
  }),
  z.object({ what: z.literal('person_changed'), userId: z.string() }),
  z.object({ what: z.literal('person_removed'), userId: z.string() }),
  z.object({ what: z.literal('key_deleted'), keyId: z.string() }),
])
export type EndedForSockets = z.infer<typeof endedForSockets>

export class Sockets {
  readonly #open = new Map<string, Set<OpenSocket>>()
  readonly #onCount: (count: number) => void
  readonly #notifyPeers: (ended: EndedForSockets) => void
  readonly #isStillIn: (caller: Caller) => Promise<boolean>
  /** Sockets whose page is seen; of a sign-in, so not of a program. */
  readonly #seen = new Set<OpenSocket>()
  /** By person, in epoch milliseconds: when a page of theirs was last seen. */
  readonly #lastSeen = new Map<string, number>()
  #count = 0

  /**
   * `notifyPeers`: other services have sockets of the same people. Must not throw. `isStillIn`: see
   * `add`.
   */
  constructor(
    onCount: (count: number) => void,
    notifyPeers: (ended: EndedForSockets) => void = () => undefined,
    isStillIn: (caller: Caller) => Promise<boolean> = () => Promise.resolve(true),
  ) {
    this.#onCount = onCount
    this.#notifyPeers = notifyPeers
    this.#isStillIn = isStillIn
  }

  /**
   * Returns the function that removes it. An end between the look-up of its caller and this call
   * was not reported to it, so that is checked again.
   */
  add(socket: OpenSocket): () => void {
    const userId = socket.caller.account.id
    const mine = this.#open.get(userId) ?? new Set()
    this.#open.set(userId, mine.add(socket))
    this.#onCount(++this.#count)
    const asked = socket.caller
    this.#isStillIn(asked).then(
      (isIn) => {
        if (!isIn && mine.has(socket) && socket.caller === asked) socket.close(CLOSE.signedOut, 'signed out')
      },
      // Not known now: as it is without the question.
      () => undefined,
    )
    return () => {
      if (!mine.delete(socket)) return
      this.looks(socket, false)
      if (mine.size === 0 && this.#open.get(userId) === mine) this.#open.delete(userId)
      this.#onCount(--this.#count)
    }
  }

  looks(socket: OpenSocket, visible: boolean): void {
    const { account, via } = socket.caller
    if (visible && via === 'sign-in') this.#seen.add(socket)
    else if (this.#seen.delete(socket)) this.#lastSeen.set(account.id, Date.now())
  }

  /** True if a page of this person is visible. */
  isLooking(userId: string): boolean {
    return [...(this.#open.get(userId) ?? [])].some((socket) => this.#seen.has(socket))
  }

  /** See `Presence`. */
  lastLooked(userId: string): number {
    return this.#lastSeen.get(userId) ?? 0
  }

  /** Everybody of whom a page is seen. */
  looking(): string[] {
    return [...new Set([...this.#seen].map(({ caller }) => caller.account.id))]
  }

  countOf(userId: string): number {
    return this.#open.get(userId)?.size ?? 0
  }

  /** Everybody who has one open. */
  people(): Account[] {
    return [...this.#open.values()].flatMap(([first]) => (first === undefined ? [] : [first.caller.account]))
  }

  sendTo(userId: string, frame: ServerFrame): void {
    for (const socket of this.#open.get(userId) ?? []) socket.send(frame)
  }

  signInEnded(signInId: string): void {
    this.#end({ what: 'sign_in_ended', signInId })
  }

  /** All sign-ins of this person have ended, but one whose id may change. */
  signInsEnded(userId: string, goesOn?: { was: string; is: string }): void {
    this.#end({ what: 'sign_ins_ended', userId, goesOn })
  }

  /** Their role or their teams have changed: their sockets begin again with what holds now. */
  personChanged(userId: string): void {
    this.#end({ what: 'person_changed', userId })
  }

  personRemoved(userId: string): void {
    this.#end({ what: 'person_removed', userId })
  }

  keyDeleted(keyId: string): void {
    this.#end({ what: 'key_deleted', keyId })
  }

  /** An event from another service. `left`: the remaining sign-ins of this person. */
  endedElsewhere(ended: EndedForSockets, left: ReadonlySet<string> = new Set()): void {
    switch (ended.what) {
      case 'sign_in_ended':
        return this.#closeWhere((caller) => caller.via === 'sign-in' && caller.signInId === ended.signInId)
      case 'sign_ins_ended':
        return this.#endSignIns(ended, left)
      case 'person_changed':
        for (const socket of this.#open.get(ended.userId) ?? [])
          socket.close(CLOSE.personChanged, 'what you may do has changed')
        return
      case 'person_removed':
        return this.#closeWhere((caller) => caller.account.id === ended.userId)
      case 'key_deleted':
        return this.#closeWhere((caller) => caller.via === 'key' && caller.keyId === ended.keyId)
    }
  }

  #end(ended: EndedForSockets): void {
    this.endedElsewhere(ended)
    this.#notifyPeers(ended)
  }

  #endSignIns(
    { userId, goesOn }: Extract<EndedForSockets, { what: 'sign_ins_ended' }>,
    left: ReadonlySet<string>,
  ): void {
    for (const socket of this.#open.get(userId) ?? []) {
      const { caller } = socket
      if (goesOn !== undefined && caller.via === 'sign-in' && caller.signInId === goesOn.was)
        socket.caller = { ...caller, signInId: goesOn.is }
    }
    this.#closeWhere(
      (caller) =>
        caller.account.id === userId &&
        caller.via === 'sign-in' &&
        caller.signInId !== goesOn?.is &&
        !left.has(caller.signInId),
    )
  }

  closeAll(): void {
    for (const socket of this.#all()) socket.close(CLOSE.goingAway, 'the service stops')
  }

  #closeWhere(ended: (caller: Caller) => boolean): void {
    for (const socket of this.#all()) if (ended(socket.caller)) socket.close(CLOSE.signedOut, 'signed out')
  }

  #all(): OpenSocket[] {
    return [...this.#open.values()].flatMap((mine) => [...mine])
  }
}
