/** A larger request counts as one of this size, which every burst has. */
const LARGEST_BYTES = 1024 * 1024
/** A request of at most so many bytes (a key press, a heartbeat) is not queued … */
const SMALL_BYTES = 4 * 1024
/** … while its sandbox stays below this rate of them, which is also their burst. */
const SMALL_RATE = 32 * 1024
const BURST_SECONDS = 1
/** After a rest, a sandbox is served so much before those that were served all the time. */
const CREDIT_BYTES = 256 * 1024
/** Rate of an agent, relative to that of one sandbox. */
const SANDBOXES = 4

/** Rate in bytes per second; `burst` bytes may be taken at once after a rest. */
class Bucket {
  readonly #rate: number
  readonly #burst: number
  #level: number
  #filledAt = performance.now()

  constructor(rate: number, burst: number) {
    this.#rate = rate
    this.#burst = burst
    this.#level = burst
  }

  /** Milliseconds until `bytes` are available; 0 when they are. */
  wait(bytes: number): number {
    const now = performance.now()
    this.#level = Math.min(this.#burst, this.#level + ((now - this.#filledAt) * this.#rate) / 1_000)
    this.#filledAt = now
    return Math.max(0, ((bytes - this.#level) * 1_000) / this.#rate)
  }

  /** Also into debt. */
  take(bytes: number): void {
    this.#level -= bytes
  }

  get full(): boolean {
    return this.wait(this.#burst) === 0
  }
}

interface Request {
  bytes: number
  stream: object
  go: () => void
}

/** One sandbox: its limits, and the requests of its streams in order. */
class Share {
  readonly all: Bucket
  readonly small = new Bucket(SMALL_RATE, SMALL_RATE)
  streams = 0
  queue: Request[] = []
  /** Bytes in competition with others so far; raised almost to theirs after a rest. */
  served = 0

  constructor(rate: number) {
    this.all = new Bucket(rate, burstOf(rate))
  }
}

/** One stream's access to the pace. */
export interface PacedStream {
  /**
   * Calls `go` when so many bytes (at most 1 MiB) may pass, possibly during the call. Bytes that
   * have already arrived are requested as well, to delay the next ones.
   */
  request(bytes: number, go: () => void): void
  /** Drops pending requests of this stream, whose `go` is never called. */
  close(): void
}

/**
 * Limits the bytes between this process and the API server, in both directions together: to `rate`
 * per second for each sandbox and four times that for all. Sandboxes that wait get equal parts;
 * unused capacity is for the others. Only large requests wait for those of other sandboxes.
 */
export class StreamPace {
  readonly #rate: number
  readonly #all: Bucket
  readonly #shares = new Map<string, Share>()
  readonly #waiting = new Set<Share>()
  /** `served` of the last sandbox before it was served, of those with rivals. */
  #position = 0
  #timer: NodeJS.Timeout | undefined
  #serving = false

  /** `rate`: bytes per second of one sandbox. */
  constructor(rate: number) {
    this.#rate = rate
    this.#all = new Bucket(rate * SANDBOXES, burstOf(rate * SANDBOXES))
  }

  /** For one more stream to this sandbox; all of its streams share one limit. */
  open(sandbox: string): PacedStream {
    // A limit remains until it is full: a stream that is opened again has no new burst.
    for (const [name, { streams, all }] of this.#shares)
      if (streams === 0 && all.full) this.#shares.delete(name)
    const share = this.#shares.get(sandbox) ?? new Share(this.#rate)
    this.#shares.set(sandbox, share)
    share.streams += 1
    const stream: PacedStream = {
      request: (bytes, go) => this.#request(share, { bytes: Math.min(bytes, LARGEST_BYTES), stream, go }),
      close: () => {
        share.streams -= 1
        share.queue = share.queue.filter((request) => request.stream !== stream)
        if (share.queue.length === 0) this.#waiting.delete(share)
        this.#serve()
      },
    }
    return stream
  }

  #request(share: Share, request: Request): void {
    const { bytes, go } = request
    if (share.queue.length === 0) share.served = Math.max(share.served, this.#position - CREDIT_BYTES)
    if (bytes <= SMALL_BYTES && share.small.wait(bytes) === 0) {
      share.small.take(bytes)
      this.#take(share, bytes)
      return go()
    }
    share.queue.push(request)
    this.#waiting.add(share)
    this.#serve()
  }

  #take(share: Share, bytes: number): void {
    share.all.take(bytes)
    this.#all.take(bytes)
  }

  /** Serves all that may pass now, and sets the timer for the next. */
  #serve(): void {
    // A `go` that requests more is within the loop, which finds it.
    if (this.#serving) return
    this.#serving = true
    clearTimeout(this.#timer)
    let next = this.#next()
    for (; next.share && next.wait === 0; next = this.#next()) this.#pass(next.share, next.rivals)
    this.#serving = false
    if (Number.isFinite(next.wait)) this.#timer = setTimeout(() => this.#serve(), Math.ceil(next.wait))
  }

  #pass(share: Share, rivals: number): void {
    const request = share.queue.shift()
    if (share.queue.length === 0) this.#waiting.delete(share)
    if (!request) return
    if (rivals > 0) {
      this.#position = share.served
      share.served += request.bytes
    }
    this.#take(share, request.bytes)
    request.go()
  }

  /**
   * The sandbox with the fewest bytes of those below their own limit, the number of the others, and
   * the milliseconds until its turn. Without one: until there may be one, infinite when none waits.
   */
  #next(): { share?: Share; wait: number; rivals: number } {
    let least: { share: Share; bytes: number } | undefined
    let earliest = Infinity
    let rivals = -1
    for (const share of this.#waiting) {
      const { bytes = 0 } = share.queue[0] ?? {}
      const wait = share.all.wait(bytes)
      if (wait > 0) earliest = Math.min(earliest, wait)
      else rivals += 1
      if (wait === 0 && (!least || share.served < least.share.served)) least = { share, bytes }
    }
    if (!least) return { wait: earliest, rivals }
    return { share: least.share, wait: this.#all.wait(least.bytes), rivals }
  }
}

/** A limit may be set below the size of a request. */
function burstOf(rate: number): number {
  return Math.max(rate * BURST_SECONDS, LARGEST_BYTES)
}
