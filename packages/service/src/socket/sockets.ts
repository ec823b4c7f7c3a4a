/**
 * The open chat sockets: sends frames to all tabs of a user, and closes those whose sign-in or key
 * has ended.
 */
import type { Account } from '@sandlot/shared/api'
import type { ServerFrame } from '@sandlot/shared/frames'
import type { Caller } from '../auth/caller.ts'

interface OpenSocket {
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
  /** What this person may do has changed: reconnect and resume. */
  personChanged: 4009,
} as const

/** Tabs of one user; more are a fault of the client. */
export const MAX_SOCKETS_PER_USER = 50

export class Sockets {
  readonly #open = new Map<string, Set<OpenSocket>>()
  readonly #onCount: (count: number) => void
  /** Sockets whose page is seen; of a sign-in, so not of a program. */
  readonly #seen = new Set<OpenSocket>()
  /** By person, in epoch milliseconds: when a page of theirs was last seen. */
  readonly #lastSeen = new Map<string, number>()
  #count = 0

  constructor(onCount: (count: number) => void) {
    this.#onCount = onCount
  }

  /** Returns the function that removes it. */
  add(socket: OpenSocket): () => void {
    const userId = socket.caller.account.id
    const mine = this.#open.get(userId) ?? new Set()
    this.#open.set(userId, mine.add(socket))
    this.#onCount(++this.#count)
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

  /** Whether a page of this person is seen. */
  isLooking(userId: string): boolean {
    return [...(this.#open.get(userId) ?? [])].some((socket) => this.#seen.has(socket))
  }

  /** As of `Presence`. */
  lastLooked(userId: string): number {
    return this.#lastSeen.get(userId) ?? 0
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
    this.#closeWhere((caller) => caller.via === 'sign-in' && caller.signInId === signInId)
  }

  /** All sign-ins of this person have ended, but one whose id may change. */
  signInsEnded(userId: string, goesOn?: { was: string; is: string }): void {
    for (const socket of this.#open.get(userId) ?? []) {
      const { caller } = socket
      if (goesOn !== undefined && caller.via === 'sign-in' && caller.signInId === goesOn.was)
        socket.caller = { ...caller, signInId: goesOn.is }
    }
    this.#closeWhere(
      (caller) => caller.account.id === userId && caller.via === 'sign-in' && caller.signInId !== goesOn?.is,
    )
  }

  /** Their role or their teams have changed: their sockets begin again with what holds now. */
  personChanged(userId: string): void {
    for (const socket of this.#open.get(userId) ?? [])
      socket.close(CLOSE.personChanged, 'what you may do has changed')
  }

  personRemoved(userId: string): void {
    this.#closeWhere((caller) => caller.account.id === userId)
  }

  keyDeleted(keyId: string): void {
    this.#closeWhere((caller) => caller.via === 'key' && caller.keyId === keyId)
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
