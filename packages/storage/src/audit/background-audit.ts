/**
 * Audit lines that no request waits for. For acts that a stranger can repeat at will the first is
 * written at once, and equal ones within ten minutes become one line with a count.
 */
import { SerialQueue } from '@sandlot/shared/async/serial-queue'
import type { NewAudit } from '@sandlot/shared/admin/audit'
import type { AuditLog } from './audit.ts'

const WINDOW_MS = 10 * 60_000
/** Different keys in a window; further ones are counted together. */
const MOST_KEYS = 200

interface Waiting {
  entry: NewAudit
  /** Acts since the written line. */
  count: number
}

export class BackgroundAudit {
  readonly #log: Pick<AuditLog, 'write'>
  readonly #onProblem: (error: unknown) => void
  readonly #windowMs: number
  #waiting = new Map<string, Waiting>()
  #timer: NodeJS.Timeout | undefined
  readonly #writes = new SerialQueue()

  /** `onProblem`: a line was not written; must not throw. */
  constructor(log: Pick<AuditLog, 'write'>, onProblem: (error: unknown) => void, windowMs = WINDOW_MS) {
    this.#log = log
    this.#onProblem = onProblem
    this.#windowMs = windowMs
  }

  /** After earlier lines. Never throws. */
  write(entry: NewAudit): void {
    this.#writes.run(() => this.#log.write(entry)).catch(this.#onProblem)
  }

  /** Never throws. `key`: equal acts; `others`: the line for keys above the limit. */
  count(key: string, entry: NewAudit, others: NewAudit): void {
    this.#timer ??= setTimeout(() => void this.flush(), this.#windowMs).unref()
    const known = this.#waiting.get(key)
    if (known !== undefined) known.count += 1
    else if (this.#waiting.size < MOST_KEYS) {
      this.#waiting.set(key, { entry, count: 0 })
      this.write(entry)
    } else this.#countOther(others)
  }

  /** Writes counted lines. Resolves when all earlier lines are written, or have failed. */
  flush(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const counted = [...this.#waiting.values()].filter(({ count }) => count > 0)
    this.#waiting = new Map()
    for (const { entry, count } of counted) this.write({ ...entry, count })
    return this.#writes.idle()
  }

  #countOther(entry: NewAudit): void {
    const others = this.#waiting.get('') ?? { entry, count: 0 }
    others.count += 1
    this.#waiting.set('', others)
  }
}
