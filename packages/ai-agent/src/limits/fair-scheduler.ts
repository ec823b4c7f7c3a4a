/**
 * Which prompt goes next where there is not room for all: people take turns, however much each asks
 * for. Pure bookkeeping without clocks and promises; `PromptQueue` is around it.
 *
 * The next turn is of the person whose last turn is the longest ago, and of theirs the prompt that
 * came first. So between two turns of a person who waits every other has at most one.
 */

/** A prompt that asks for its turn. */
export interface Ticket {
  /** The prompt. */
  id: string
  /** The person in turn. */
  person: string
  /** The model that it wants to ask. */
  model: string
}

interface Waiting extends Ticket {
  /** Grows with each that came. */
  joined: number
}

/** The reason that a prompt waits. `until`: the model takes no request before. */
type Blocked = { why: 'places' } | { why: 'model'; until: number | undefined }

/** Capacity of a model that refused requests. */
interface Throttled {
  /** No request before, as the clock of the caller says. */
  until: number
  /** Requests that may be unanswered at once; grows while the model answers. */
  atOnce: number
  /** Prompts that were let through and are not answered yet. */
  asking: Set<string>
}

/** A prompt that has a place. */
interface Holder {
  person: string
  /** The number of its person's last turn, and of the one before. */
  served: number
  before: number | undefined
}

export class FairScheduler {
  /** Prompts that may have a place at once. */
  readonly #slots: number
  readonly #holders = new Map<string, Holder>()
  readonly #throttled = new Map<string, Throttled>()
  readonly #waiting = new Map<string, Waiting>()
  /** The number of each person's last turn. */
  readonly #served = new Map<string, number>()
  #count = 0

  constructor(slots: number) {
    this.#slots = slots
  }

  get slots(): number {
    return this.#slots
  }

  /** Places that are taken. */
  get held(): number {
    return this.#holders.size
  }

  get size(): number {
    return this.#waiting.size
  }

  holds(id: string): boolean {
    return this.#holders.has(id)
  }

  /** The number of a person's last turn; 0: none that is remembered. */
  servedAt(person: string): number {
    return this.#served.get(person) ?? 0
  }

  /** True: it goes at once. False: it waits, where it was if it waited already. */
  ask(ticket: Ticket, now: number): boolean {
    if (this.#waiting.has(ticket.id)) return false
    // No overtaking: what waits for the same goes first.
    if (this.#fits(ticket, now) && ![...this.#waiting.values()].some((other) => this.#fits(other, now))) {
      this.#give(ticket)
      return true
    }
    this.#waiting.set(ticket.id, { ...ticket, joined: ++this.#count })
    return false
  }

  /** Restores the state before a restart: slots and queue positions stay the same. */
  restore(ticket: Ticket, before: { joined: number; served: number } | 'running'): void {
    if (before === 'running') {
      this.#holders.set(ticket.id, { person: ticket.person, served: 0, before: undefined })
      return
    }
    const { joined, served } = before
    this.#waiting.set(ticket.id, { ...ticket, joined })
    if (served > this.servedAt(ticket.person)) this.#served.set(ticket.person, served)
    this.#count = Math.max(this.#count, joined, served)
  }

  /** Its number among all that ever joined; undefined: it does not wait. */
  joinedAt(id: string): number | undefined {
    return this.#waiting.get(id)?.joined
  }

  /** It wants nothing any more: not a place, and no turn. */
  leave(id: string): void {
    this.#waiting.delete(id)
    this.#holders.delete(id)
    for (const { asking } of this.#throttled.values()) asking.delete(id)
    this.#forget()
  }

  /** The model refused this request, and takes none before `until`. */
  refused({ id, person, model }: Ticket, until: number): void {
    const before = this.#throttled.get(model)
    const throttled = before ?? { until, atOnce: 1, asking: new Set<string>() }
    throttled.until = Math.max(throttled.until, until)
    throttled.atOnce = 1
    this.#throttled.set(model, throttled)
    throttled.asking.delete(id)
    const holder = this.#holders.get(id)
    // A turn that got nothing was none.
    if (holder !== undefined && this.#served.get(person) === holder.served) {
      if (holder.before === undefined) this.#served.delete(person)
      else this.#served.set(person, holder.before)
    }
    // While the model rests, others may use the place.
    this.#holders.delete(id)
  }

  /** The model answers this request, or it has failed for another reason. */
  answered({ id, model }: Pick<Ticket, 'id' | 'model'>, well: boolean): void {
    const throttled = this.#throttled.get(model)
    if (throttled?.asking.delete(id) !== true || !well) return
    throttled.atOnce *= 2
    this.#forget()
  }

  /** True if the model of this prompt has recently refused requests. */
  isThrottled(model: string): boolean {
    return this.#throttled.has(model)
  }

  /** Everything that can go now goes, in its order. */
  next(now: number): Ticket[] {
    const granted: Ticket[] = []
    for (;;) {
      const ticket = this.inOrder().find((one) => this.#fits(one, now))
      if (ticket === undefined) return granted
      this.#waiting.delete(ticket.id)
      this.#give(ticket)
      granted.push(ticket)
    }
  }

  /** The queue, in the order in which it runs as long as no prompt joins or leaves. */
  inOrder(): Ticket[] {
    const rounds = new Map<string, number>()
    return [...this.#waiting.values()]
      .toSorted((a, b) => a.joined - b.joined)
      .map((ticket) => {
        const round = rounds.get(ticket.person) ?? 0
        rounds.set(ticket.person, round + 1)
        return { ticket, round, served: this.servedAt(ticket.person) }
      })
      .toSorted((a, b) => a.round - b.round || a.served - b.served || a.ticket.joined - b.ticket.joined)
      .map(({ ticket }) => ticket)
  }

  /**
   * When the first of what waits can go as things are, which may be past; undefined: not by time
   * alone, but when a place is free or a model answers.
   */
  nextAt(now: number): number | undefined {
    const times = [...this.#waiting.values()].flatMap(({ id, model }) => {
      if (!this.#hasSlot(id)) return []
      const throttled = this.#throttled.get(model)
      if (throttled === undefined || throttled.asking.has(id)) return [now]
      return isTaking(throttled, id) ? [throttled.until] : []
    })
    return times.length === 0 ? undefined : Math.min(...times)
  }

  /** Models that refused requests: for how long yet, and what they are let answer. */
  resting(now: number): { model: string; waitMs: number; atOnce: number; asking: number }[] {
    return [...this.#throttled].map(([model, { until, atOnce, asking }]) => ({
      model,
      waitMs: Math.max(0, Math.ceil(until - now)),
      atOnce,
      asking: asking.size,
    }))
  }

  /** The reason that this one waits. */
  blockedBy({ id, model }: Ticket, now: number): Blocked {
    const throttled = this.#throttled.get(model)
    if (throttled === undefined || hasRoom(throttled, id, now)) return { why: 'places' }
    return { why: 'model', until: throttled.until > now ? throttled.until : undefined }
  }

  #fits({ id, model }: Ticket, now: number): boolean {
    const throttled = this.#throttled.get(model)
    if (throttled !== undefined && !hasRoom(throttled, id, now)) return false
    return this.#hasSlot(id)
  }

  #hasSlot(id: string): boolean {
    return this.#holders.has(id) || this.#holders.size < this.#slots
  }

  #give({ id, person, model }: Ticket): void {
    const throttled = this.#throttled.get(model)
    const isSame = throttled === undefined || throttled.asking.has(id)
    if (this.#holders.has(id) && isSame) return
    throttled?.asking.add(id)
    this.#holders.set(id, { person, served: ++this.#count, before: this.#served.get(person) })
    this.#served.set(person, this.#count)
  }

  /** Drops limits without a prompt behind them, and old turns of people who have left. */
  #forget(): void {
    const models = new Set([...this.#waiting.values()].map(({ model }) => model))
    for (const [model, { asking, atOnce }] of this.#throttled)
      if (!models.has(model) && asking.size === 0 && atOnce > 1) this.#throttled.delete(model)
    if (this.#waiting.size > 0 || this.#served.size <= MOST_PEOPLE) return
    const here = new Set([...this.#holders.values()].map(({ person }) => person))
    for (const person of this.#served.keys()) if (!here.has(person)) this.#served.delete(person)
  }
}

/** The last turns of so many people are kept while the line is empty. */
const MOST_PEOPLE = 1_000

function hasRoom(throttled: Throttled, id: string, now: number): boolean {
  return throttled.asking.has(id) || (now >= throttled.until && isTaking(throttled, id))
}

/** True if it takes this one at its time. */
function isTaking({ atOnce, asking }: Throttled, id: string): boolean {
  return asking.has(id) || asking.size < atOnce
}
