/** The size of a model’s context, and where it is known from. */
import { type BackoffRules, backoffMs } from '@sandlot/shared/async/backoff'
import { orTimeout } from '@sandlot/shared/async/or-timeout'
import type { WindowFrom } from '@sandlot/shared/chat/event-meta'

/** Tokens of a window of which nothing is known. */
const ASSUMED = 32_000
/** Less is no window, but a count of something else. */
const LEAST = 1_000
/** Milliseconds for which the first request waits for what the server says. */
const PATIENCE_MS = 250
/** The same where a provider publishes it: a chat would be compacted for an assumption. */
const PUBLISHED_MS = 3_000
/** Milliseconds between two questions, after the server has said something. */
const AGAIN_MS = 60_000
/** The same while it says nothing: doubled with each question, up to 11 minutes. */
const UNKNOWN: BackoffRules = { firstMs: 5_000, longestMs: 640_000 }

interface WindowSources {
  /** Tokens, as the operator has set them. */
  set?: number | undefined
  /** Tokens, as published. */
  table?: number | undefined
  /** Asks the server what it has loaded or lists, where neither is given. */
  ask?: (() => Promise<number | undefined>) | undefined
  /** True if the server publishes it for all its customers: one answer holds. Default false. */
  published?: boolean
  now?: () => number
}

/** A window, as the loop uses it. */
export type ModelWindow = Pick<ContextWindow, 'tokens' | 'from' | 'isGiven' | 'learn' | 'refresh'>

/**
 * The context window of one model: what is set or published, else what its server says, else an
 * assumption; less where it turned out to hold less. It changes while the model is used.
 */
export class ContextWindow {
  readonly #sources: WindowSources
  #said: number | undefined
  #learnt: number | undefined
  #askedAt: number | undefined
  #asking: Promise<void> | undefined
  /** Questions in a row to which the server said nothing. */
  #unknown = 0

  constructor(sources: WindowSources) {
    this.#sources = sources
  }

  get tokens(): number {
    return this.#learnt ?? this.#stated.tokens
  }

  get from(): WindowFrom {
    return this.#learnt === undefined ? this.#stated.from : 'learnt'
  }

  /** True if it is set, or published for all customers. */
  get isGiven(): boolean {
    const { set, table, published = false } = this.#sources
    return set !== undefined || table !== undefined || (published && this.#said !== undefined)
  }

  /**
   * The model turned out to hold no more than this. True where that is news. It holds until the
   * server says something else than before, or the model is configured again.
   */
  learn(tokens: number): boolean {
    if (!Number.isFinite(tokens) || tokens < LEAST || tokens >= this.tokens) return false
    this.#learnt = Math.floor(tokens)
    return true
  }

  /**
   * Asks the server, if it was not asked lately; `again`: in any case. Returns what to wait for
   * before the first request (resolves soon, and never rejects), or undefined: later questions are
   * asked beside the request.
   */
  refresh(again = false): Promise<void> | undefined {
    const { set, table, ask, published = false, now = Date.now } = this.#sources
    if (ask === undefined || set !== undefined || table !== undefined) return undefined
    const known = published ? Number.POSITIVE_INFINITY : AGAIN_MS
    const pause = this.#said === undefined ? backoffMs(this.#unknown + 1, UNKNOWN) : known
    const since = this.#askedAt === undefined ? Number.POSITIVE_INFINITY : Math.abs(now() - this.#askedAt)
    if (this.#asking === undefined && (again || since >= pause)) {
      const first = this.#askedAt === undefined
      this.#askedAt = now()
      const asking = ask().then((said) => this.#hear(said))
      this.#asking = asking
      if (first) return orTimeout(asking, published ? PUBLISHED_MS : PATIENCE_MS, undefined)
    }
    return undefined
  }

  #hear(said: number | undefined): void {
    this.#asking = undefined
    this.#unknown = said === undefined ? this.#unknown + 1 : 0
    // A model that is not loaded now is loaded again as it was.
    if (said === undefined || said === this.#said) return
    this.#said = said
    this.#learnt = undefined
  }

  get #stated(): { tokens: number; from: WindowFrom } {
    const { set, table } = this.#sources
    if (set !== undefined) return { tokens: set, from: 'set' }
    if (this.#said !== undefined) return { tokens: this.#said, from: 'server' }
    return table === undefined ? { tokens: ASSUMED, from: 'assumed' } : { tokens: table, from: 'table' }
  }
}

/** Ordered: the size of a request precedes the comparison, and may bear the name of the limit. */
const LIMITS: readonly RegExp[] = [
  /\d(?: tokens)?\s*>\s*(\d[\d,]*)/i,
  /(?:exceed\w*|(?:greater|larger|longer) than|too (?:large|long) (?:for|to))\b(?=[^\d.;]{0,60}(?:limit|max|context|window|length|n_ctx))(?:(?!\b(?:by|you|your|has|got|code)\b)[^\d.;]){1,60}(?<![\w-])(\d[\d,]*)(?!\w)/i,
  /(?:context (?:length|window|size)|sequence length|max_seq_len|max_model_len|maximum prompt length|n_ctx)(?:(?!exceed|overflow|too |\b(?:by|than|code)\b)[^\d.;]){0,40}(?<![\w-])(\d[\d,]*)(?!\w)/i,
  /(?:less than|at most|limit(?: of)?|maximum(?: of)?)\s*(\d[\d,]*)\s*(?:input )?tokens/i,
]

/** Tokens that a provider names as its limit, when it refuses a request as too long. */
export function limitIn(words: string): number | undefined {
  for (const pattern of LIMITS) {
    const digits = pattern.exec(words)?.[1]?.replaceAll(',', '')
    if (digits !== undefined && Number(digits) >= LEAST) return Number(digits)
  }
  return undefined
}
