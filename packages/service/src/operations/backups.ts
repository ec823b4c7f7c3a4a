/** Status of the backup process, for administrators and for the audit log. */
import { readFile } from 'node:fs/promises'
import { SerialQueue } from '@sandlot/shared/async/serial-queue'
import { messageOf } from '@sandlot/shared/base/errors'
import { type AuditKind, type NewAudit, OPERATOR, SANDLOT } from '@sandlot/shared/admin/audit'
import {
  type BackupStatus,
  type BackupTry,
  type BackupsView,
  backupStatus,
  nextBackup,
} from '@sandlot/shared/admin/backup-status'
import type { AuditLog } from '@sandlot/storage/audit/audit'
import type { Logger } from '../log.ts'

const CHECK_MS = 60_000
/** Without an earlier line in the log, only what was tried so lately gets one. */
const RECENT_MS = 86_400_000

const KINDS = {
  backup: 'backup_made',
  fail: 'backup_failed',
  restore: 'backup_restored',
} as const satisfies Record<BackupTry['did'], AuditKind>

interface BackupsParts {
  /** The status that each backup leaves. */
  file: string
  audit: Pick<AuditLog, 'page' | 'write'>
  /** One of several services writes the lines. */
  leads: () => boolean
  log: Logger
}

export class Backups {
  readonly #parts: BackupsParts
  readonly #timer: NodeJS.Timeout
  readonly #checks = new SerialQueue()

  /** Looks now and every minute. */
  constructor(parts: BackupsParts) {
    this.#parts = parts
    void this.check()
    this.#timer = setInterval(() => void this.check(), CHECK_MS).unref()
  }

  async view(): Promise<BackupsView> {
    const status = await this.#read()
    const everyMs = status?.settings?.everyMs ?? null
    return {
      status: status ?? null,
      nextAt: status === undefined || everyMs === null ? null : nextBackup(status, everyMs, Date.now()),
    }
  }

  /** Writes a line for each try that has none yet. Never rejects. */
  check(): Promise<void> {
    return this.#checks.run(() => this.#check())
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#checks.idle()
  }

  async #check(): Promise<void> {
    const { audit, leads, log } = this.#parts
    if (!leads()) return
    try {
      const tries = (await this.#read())?.tries ?? []
      if (tries.length === 0) return
      const [last] = await audit.page({ what: Object.values(KINDS), limit: 1 })
      const known = last?.after?.['at']
      const since = typeof known === 'string' ? Date.parse(known) : Date.now() - RECENT_MS
      // They are the newest first, and lines come in the order of time.
      for (const one of tries.toReversed()) if (Date.parse(one.at) > since) await audit.write(lineOf(one))
    } catch (error) {
      log.warn({ error: messageOf(error) }, 'backups could not be written into the audit log')
    }
  }

  /** Undefined: none was tried yet, or the file is being written by an older version. */
  async #read(): Promise<BackupStatus | undefined> {
    try {
      return backupStatus.parse(JSON.parse(await readFile(this.#parts.file, 'utf8')))
    } catch {
      return undefined
    }
  }
}

function lineOf({ did, by, ...facts }: BackupTry): NewAudit {
  return { who: by === 'operator' ? OPERATOR : SANDLOT, what: KINDS[did], after: facts }
}
