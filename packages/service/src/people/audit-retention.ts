/**
 * Applies the retention of the audit log to the service's own lines. The days are in the agent's
 * database; while that cannot be read, nothing goes.
 */
import { SerialQueue } from '@sandlot/shared/async/serial-queue'
import { messageOf } from '@sandlot/shared/base/errors'
import { SANDLOT } from '@sandlot/shared/admin/audit'
import type { AuditLog } from '@sandlot/storage/audit/audit'
import type { Sessions } from '../chat/sessions.ts'
import type { Logger } from '../log.ts'

const DAY_MS = 86_400_000
const CHECK_MS = 60 * 60_000
const LINES = 500

interface AuditRetentionParts {
  audit: Pick<AuditLog, 'removeOlder' | 'write'>
  sessions: Pick<Sessions, 'reader'>
  log: Logger
  /** True if this service does it, and not another one. */
  leads: () => boolean
}

export class AuditRetention {
  readonly #parts: AuditRetentionParts
  readonly #timer: NodeJS.Timeout
  readonly #runs = new SerialQueue()
  #ended = false

  /** Looks every hour. */
  constructor(parts: AuditRetentionParts) {
    this.#parts = parts
    this.#timer = setInterval(() => {
      if (parts.leads()) void this.run()
    }, CHECK_MS).unref()
  }

  /** Never rejects. */
  run(): Promise<void> {
    return this.#runs.run(() => this.#run())
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    this.#ended = true
    await this.#runs.idle()
  }

  async #run(): Promise<void> {
    const { audit, sessions, log } = this.#parts
    try {
      const { days } = await (await sessions.reader()).admin.retention.get()
      if (days.audit === null) return
      let removed = 0
      for (let some = LINES; some === LINES && !this.#ended;) {
        some = await audit.removeOlder(Date.now() - days.audit * DAY_MS, LINES)
        removed += some
      }
      if (removed === 0) return
      log.info({ removed }, 'retention removed lines of the audit log')
      await audit.write({ who: SANDLOT, what: 'retention_run', before: days, after: { audit: removed } })
    } catch (error) {
      log.warn({ error: messageOf(error) }, 'retention of the audit log could not be applied')
    }
  }
}
