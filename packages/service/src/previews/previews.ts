/**
 * Who may see which port of their sandbox, and for how long. A preview belongs to one person and
 * one port; a browser gets in by a ticket of one use, and stays by a cookie of the preview's host.
 */
import { createHmac } from 'node:crypto'
import { SandlotError } from '@sandlot/shared/errors'
import { randomText } from '@sandlot/shared/ids'
import type { Caller } from '../auth/caller.ts'
import type { Sockets } from '../socket/sockets.ts'

const SECRET_CHARS = 32
const TICKET_MS = 60_000
/** Of a browser that does not come back. */
const PASS_MS = 12 * 3_600_000
/** Browsers of one person; the one that was let in first has to come again. */
const MOST_PASSES = 24
/** Connections of one person into their sandbox. */
const MOST_CONNECTIONS = 32
const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567'

/** A browser that was let in. */
export interface Pass {
  readonly previewId: string
  readonly port: number
  readonly caller: Caller
  /** Aborted when its sign-in has ended, or its time. */
  readonly ended: AbortSignal
}

interface HeldPass extends Pass {
  timer: NodeJS.Timeout
  end(): void
}

export class Previews {
  readonly #secret: string
  readonly #sockets: Sockets
  readonly #ticketMs: number
  readonly #tickets = new Map<string, { previewId: string; port: number; caller: Caller }>()
  /** By the value of the cookie. */
  readonly #passes = new Map<string, HeldPass>()
  /** By person. */
  readonly #connections = new Map<string, number>()

  constructor(secret: string, sockets: Sockets, ticketMs = TICKET_MS) {
    this.#secret = secret
    this.#sockets = sockets
    this.#ticketMs = ticketMs
  }

  /** The same port of the same person has the same origin, so that its storage stays. */
  idOf(userId: string, port: number): string {
    const digest = createHmac('sha256', this.#secret)
      .update(JSON.stringify([userId, port]))
      .digest()
    return [...digest.subarray(0, 26)].map((byte) => BASE32[byte & 31]).join('')
  }

  /** A ticket of one use for a browser of this person. */
  offer(caller: Caller, port: number): string {
    const id = this.idOf(caller.account.id, port)
    const ticket = randomText(SECRET_CHARS)
    this.#tickets.set(ticket, { previewId: id, port, caller })
    setTimeout(() => this.#tickets.delete(ticket), this.#ticketMs).unref()
    return ticket
  }

  /** The value of the cookie for this ticket; undefined: it is for nothing here, any more. */
  enter(previewId: string, ticket: string): string | undefined {
    const offered = this.#tickets.get(ticket)
    if (offered?.previewId !== previewId) return undefined
    this.#tickets.delete(ticket)
    const { caller } = offered
    const own = [...this.#passes].filter(([, pass]) => pass.caller.account.id === caller.account.id)
    for (const [, pass] of own.slice(0, Math.max(0, own.length + 1 - MOST_PASSES))) pass.end()
    const key = randomText(SECRET_CHARS)
    const ending = new AbortController()
    const end = (): void => {
      clearTimeout(pass.timer)
      leave()
      this.#passes.delete(key)
      ending.abort()
    }
    const pass: HeldPass = {
      ...offered,
      ended: ending.signal,
      timer: setTimeout(end, PASS_MS).unref(),
      end,
    }
    // Ends as a page of theirs does: with the sign-in, the key, the account, or what they may do.
    const leave = this.#sockets.add({ caller, send: () => undefined, close: end })
    this.#passes.set(key, pass)
    return key
  }

  /** What the browser with this cookie may see of the preview; undefined: nothing. */
  passOf(previewId: string, key: string | undefined): Pass | undefined {
    const pass = key === undefined ? undefined : this.#passes.get(key)
    if (pass?.previewId !== previewId) return undefined
    pass.timer.refresh()
    return pass
  }

  /** Counts a connection; returns what takes it back. Throws `rate_limited`. */
  connecting({ caller }: Pass): () => void {
    const { id } = caller.account
    const open = this.#connections.get(id) ?? 0
    if (open >= MOST_CONNECTIONS)
      throw new SandlotError(
        'rate_limited',
        `Your previews have ${MOST_CONNECTIONS} connections open. Close some of them.`,
      )
    this.#connections.set(id, open + 1)
    let left = false
    return () => {
      if (left) return
      left = true
      const now = (this.#connections.get(id) ?? 1) - 1
      if (now === 0) this.#connections.delete(id)
      else this.#connections.set(id, now)
    }
  }
}
