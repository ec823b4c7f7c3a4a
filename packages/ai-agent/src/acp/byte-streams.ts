/**
 * Byte streams beside ACP: an extension request offers one and answers with a ticket, and our
 * service opens a binary WebSocket at `/stream/<ticket>` for it.
 */
import { randomText } from '@sandlot/shared/base/ids'
import { SandlotError } from '@sandlot/shared/base/errors'
import type { WebSocket } from 'ws'

const TICKET_CHARS = 32
const TICKET_MS = 30_000
/** Tickets that wait for their socket. */
const MOST_TICKETS = 1_000

type OpenStream = (socket: WebSocket) => void

export class ByteStreams {
  readonly #offers = new Map<string, { open: OpenStream; timer: NodeJS.Timeout }>()
  readonly #ticketMs: number

  constructor(ticketMs = TICKET_MS) {
    this.#ticketMs = ticketMs
  }

  /**
   * A ticket for one use. `open` gets its socket, whose messages are read from then on, and is
   * never called when none comes in time. Throws `rate_limited`.
   */
  offer(open: OpenStream): string {
    if (this.#offers.size >= MOST_TICKETS)
      throw new SandlotError('rate_limited', 'Too many streams are being opened. Try again in a moment.')
    const ticket = randomText(TICKET_CHARS)
    const timer = setTimeout(() => this.#offers.delete(ticket), this.#ticketMs).unref()
    this.#offers.set(ticket, { open, timer })
    return ticket
  }

  /** The stream of this ticket; undefined: none, or none any more. */
  take(ticket: string): OpenStream | undefined {
    const offer = this.#offers.get(ticket)
    this.#offers.delete(ticket)
    clearTimeout(offer?.timer)
    return offer?.open
  }
}
