/**
 * Access to a port of a sandbox. A preview belongs to one person and one port; a browser enters
 * with a ticket of one use, and stays with a cookie of the preview's host. Both are valid at every
 * service: tickets are rows, and cookies are signed and name a sign-in or a key, which must still
 * exist.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { SandlotError } from '@sandlot/shared/base/errors'
import { randomText } from '@sandlot/shared/base/ids'
import type { AccountsStore } from '@sandlot/storage/accounts/store'
import { z } from 'zod'
import { type Caller, type CallerMark, callerMark, findMarked, markOf } from '../auth/caller.ts'
import type { Sockets } from '../socket/sockets.ts'

const SECRET_CHARS = 32
const TICKET_MS = 60_000
/** The lifetime of the cookie of a browser that does not return. */
const PASS_MS = 12 * 3_600_000
/** The age at which a cookie is renewed. */
const RENEW_MS = 3_600_000
/** Passes of one person that are held here; one that is not is found again by its cookie. */
const MOST_PASSES = 24
/** Connections of one person into their sandbox. */
const MOST_CONNECTIONS = 32
const SIGNATURE_CHARS = 64
const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567'

/** The claims of a ticket and of a cookie. */
const admission = callerMark.extend({ port: z.number() })
const signed = admission.extend({ at: z.number() })

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

interface PreviewsParts {
  /** The same at every service. */
  secret: string
  sockets: Sockets
  accounts: Pick<AccountsStore, 'services' | 'users' | 'keys' | 'signIns'>
  ticketMs?: number
}

export class Previews {
  readonly #parts: PreviewsParts
  /** By who has it, and of which preview. */
  readonly #passes = new Map<string, HeldPass>()
  /** By person. */
  readonly #connections = new Map<string, number>()

  constructor(parts: PreviewsParts) {
    this.#parts = parts
  }

  /** The same port of the same person has the same origin, so that its storage stays. */
  idOf(userId: string, port: number): string {
    const digest = createHmac('sha256', this.#parts.secret)
      .update(JSON.stringify([userId, port]))
      .digest()
    return [...digest.subarray(0, 26)].map((byte) => BASE32[byte & 31]).join('')
  }

  /** A ticket of one use for a browser of this person. */
  async offer(caller: Caller, port: number): Promise<string> {
    const { accounts, ticketMs = TICKET_MS } = this.#parts
    const ticket = randomText(SECRET_CHARS)
    const id = this.idOf(caller.account.id, port)
    const value = JSON.stringify({ ...markOf(caller), port } satisfies z.infer<typeof admission>)
    await accounts.services.tickets.put(`${id} ${ticket}`, value, ticketMs)
    return ticket
  }

  /** The value of the cookie for this ticket; undefined: it is for nothing here, any more. */
  async enter(previewId: string, ticket: string): Promise<string | undefined> {
    const value = await this.#parts.accounts.services.tickets.take(`${previewId} ${ticket}`)
    return value === undefined ? undefined : this.#cookieOf(admission.parse(JSON.parse(value)))
  }

  /** The access of the browser with this cookie; undefined: none. `cookie`: a renewed one. */
  async passOf(
    previewId: string,
    key: string | undefined,
  ): Promise<{ pass: Pass; cookie?: string } | undefined> {
    const said = key === undefined ? undefined : this.#read(key)
    if (said === undefined || this.idOf(said.userId, said.port) !== previewId) return undefined
    const age = Date.now() - said.at
    // Until its renewal, a cookie does not record later visits.
    if (age > PASS_MS + RENEW_MS) return undefined
    const { at: _at, ...mark } = said
    const name = JSON.stringify([said.via, said.id, said.port])
    const pass = this.#passes.get(name) ?? (await this.#hold(name, previewId, mark))
    if (pass === undefined) return undefined
    pass.timer.refresh()
    return age < RENEW_MS ? { pass } : { pass, cookie: this.#cookieOf(mark) }
  }

  async #hold(
    name: string,
    previewId: string,
    said: CallerMark & { port: number },
  ): Promise<HeldPass | undefined> {
    const { accounts, sockets } = this.#parts
    const first = await findMarked(accounts, said)
    if (first === undefined) return undefined
    const ending = new AbortController()
    const end = (): void => {
      clearTimeout(pass.timer)
      leave()
      if (this.#passes.get(name) === pass) this.#passes.delete(name)
      ending.abort()
    }
    const timer = setTimeout(() => end(), PASS_MS).unref()
    const pass = { previewId, port: said.port, caller: first, ended: ending.signal, timer, end }
    // Ends as a page of theirs does: with the sign-in, the key, the account, or what they may do.
    const leave = sockets.add({
      get caller() {
        return first
      },
      // The cookie names the sign-in that another has replaced.
      set caller(_other: Caller) {
        end()
      },
      send: () => undefined,
      close: end,
    })
    // A sign-in that ended before now was not reported to this pass.
    const caller = await findMarked(accounts, said)
    const known = this.#passes.get(name)
    if (caller === undefined || !mayPreview(caller) || known !== undefined) end()
    if (ending.signal.aborted) return known
    const own = [...this.#passes.values()].filter((one) => one.caller.account.id === said.userId)
    for (const one of own.slice(0, Math.max(0, own.length + 1 - MOST_PASSES))) one.end()
    pass.caller = caller ?? first
    this.#passes.set(name, pass)
    return pass
  }

  #cookieOf(said: z.infer<typeof admission>): string {
    const text = JSON.stringify({ ...said, at: Date.now() } satisfies z.infer<typeof signed>)
    const hex = Buffer.from(text).toString('hex')
    return this.#signatureOf(hex) + hex
  }

  #read(cookie: string): z.infer<typeof signed> | undefined {
    const given = Buffer.from(cookie.slice(0, SIGNATURE_CHARS))
    const hex = cookie.slice(SIGNATURE_CHARS)
    const right = Buffer.from(this.#signatureOf(hex))
    if (given.length !== right.length || !timingSafeEqual(given, right)) return undefined
    return signed.parse(JSON.parse(Buffer.from(hex, 'hex').toString()))
  }

  #signatureOf(hex: string): string {
    return createHmac('sha256', this.#parts.secret).update(`pass ${hex}`).digest('hex')
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

function mayPreview(caller: Caller): boolean {
  return caller.account.role !== 'guest' && (caller.via === 'sign-in' || caller.scopes.includes('exec'))
}
