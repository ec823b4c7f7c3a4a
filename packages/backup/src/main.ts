/**
 * The backup process: `backup [--to DIR]`, `restore FILE [--unauthenticated]`, `migrate`,
 * `scheduled` for `up` and compose, or `once` for a schedule of others. Prints one line of JSON,
 * and a log for `scheduled`.
 */
import { spawnSync } from 'node:child_process'
import { setPriority } from 'node:os'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { setTimeout as sleep } from 'node:timers/promises'
import { ConfigError } from '@sandlot/shared/config'
import { messageOf } from '@sandlot/shared/base/errors'
import { SandboxError } from '@sandlot/sandbox/errors'
import { StorageError } from '@sandlot/storage/storage-error'
import { type MadeBackup, makeBackup, removeOld } from './backup.ts'
import { BackupError } from './backup-error.ts'
import { readBackupConfig } from './config.ts'
import { deploymentOf } from './data-folder.ts'
import { type Migrated, migrate } from './migrate.ts'
import { type Restored, restoreBackup } from './restore.ts'
import { incomplete, keepSchedule, recorded, recordRestore, recordSettings } from './schedule.ts'

type Config = ReturnType<typeof readBackupConfig>

type Answer =
  | ({ did: 'backup' } & MadeBackup)
  | ({ did: 'restore' } & Restored)
  | ({ did: 'migrate' } & Migrated)
  | { did: 'nothing'; code: string; message: string; fix: string }

/** Exit code when nothing was done; the answer has the reason. */
const NOTHING_DONE = 3
/** Exit code of a verified backup without some workspaces; the answer names them. */
const INCOMPLETE = 4
const LOWEST_PRIORITY = 19

const LEVEL = { info: 30, error: 50 } as const

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    to: { type: 'string' },
    /** A file or folder with settings outside of the data folder; repeatable. */
    settings: { type: 'string', multiple: true, default: [] },
    /** Restore also an unsigned backup of an earlier version. */
    unauthenticated: { type: 'boolean', default: false },
    /** The gate's folder, if outside of the data folder. */
    'engine-folder': { type: 'string' },
  },
})

async function main(): Promise<Answer | undefined> {
  const config = readBackupConfig()
  const [act = '', file = ''] = positionals
  const say = (part: string): void => void process.stderr.write(`  … ${part}\n`)
  lowerPriority()
  if (act === 'backup') return { did: 'backup', ...(await backup(config, say)) }
  if (act === 'once')
    return { did: 'backup', ...(await backup(config, say, 'schedule', () => prune(config))) }
  if (act === 'scheduled') return scheduled(config)
  if (act === 'migrate') {
    if (config.postgres === undefined) throw new Error('DATABASE_URL is not set.')
    const { data, postgres } = config
    return { did: 'migrate', ...(await migrate({ data, url: postgres.url, doing: say })) }
  }
  if (act !== 'restore') throw new Error(`Unknown command "${act}".`)
  const { data, postgres, workspaces } = config
  const engineFolder = values['engine-folder']
  const passphrase = passphraseOf(config)
  const restored = await restoreBackup({
    file: resolve(file),
    data,
    postgres,
    passphrase,
    unauthenticated: values.unauthenticated,
    workspaces,
    engineFolder,
    doing: say,
  })
  // The id is in the restored keys.
  recordRestore(recordOf({ ...config, keys: undefined }, 'operator'), restored)
  return { did: 'restore', ...restored }
}

/** Fields of every record. */
function recordOf(config: Config, by: 'operator' | 'schedule') {
  const { data, keys, postgres, folder, keep, everyMs = null } = config
  return {
    data,
    by,
    deployment: deploymentOf(data, postgres === undefined, keys),
    settings: { folder, keep, everyMs, inContainer: values['engine-folder'] !== undefined },
  }
}

/** Yields to everything else on this machine. Later threads inherit the priority. */
function lowerPriority(): void {
  setPriority(LOWEST_PRIORITY)
  spawnSync('ionice', ['-c', '3', '-p', String(process.pid)], { stdio: 'ignore' })
}

function passphraseOf({ passphrase }: Config): string {
  if (passphrase !== undefined) return passphrase
  throw new BackupError(
    'no_passphrase',
    'No passphrase is set, and keys must not be written unencrypted. Nothing was done.',
    'Write a passphrase into a file that only you can read, keep a copy elsewhere, and set SANDLOT_BACKUP_PASSPHRASE_FILE to its path.',
  )
}

/** Makes a backup and records the result. `made` is called before that. Rejects on failure. */
async function backup(
  config: Config,
  doing: (part: string) => void,
  by: 'operator' | 'schedule' = 'operator',
  made: () => void = () => undefined,
): Promise<MadeBackup> {
  const { data, keys, postgres, workspaces, version } = config
  // Throws without a deployment, before anything is written.
  const record = recordOf(config, by)
  const to = values.to ?? config.folder
  const { settings } = values
  return recorded(record, async () => {
    const passphrase = passphraseOf(config)
    const what = { data, keys, postgres, workspaces, settings }
    const last = await makeBackup({ ...what, to, passphrase, version, doing })
    made()
    return last
  })
}

/** Removes all but the newest. Returns their names. */
function prune({ data, postgres, keys, folder, keep }: Config): string[] {
  return removeOld(folder, deploymentOf(data, postgres === undefined, keys), keep)
}

/** Runs until a signal. */
async function scheduled(config: Config): Promise<undefined> {
  const ended = new AbortController()
  const { signal } = ended
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => ended.abort())
  const { everyMs, data } = config
  try {
    recordSettings(recordOf(config, 'schedule'))
  } catch (error) {
    // During the first start there is no deployment yet; the first backup records the settings.
    if (!(error instanceof BackupError)) throw error
  }
  if (everyMs === undefined) {
    log('info', 'SANDLOT_BACKUP_EVERY_HOURS is not set: backups are made only on demand')
    // Waits for a signal: compose would restart a process that exits.
    await sleep(2 ** 31 - 1, undefined, { signal }).catch(() => undefined)
    return undefined
  }
  const make = async (): Promise<void> => {
    try {
      let removed: string[] = []
      const keepNewest = (): void => {
        removed = prune(config)
      }
      const made = await backup(config, () => checkNotStopped(signal), 'schedule', keepNewest)
      const { file, bytes, workspaces } = made
      const missing = incomplete(made)
      if (missing === undefined) log('info', 'backup made and verified', { file, bytes, workspaces, removed })
      else log('error', `Backup incomplete: ${missing}`)
    } catch (error) {
      // During the first start there is no deployment yet.
      const early = error instanceof BackupError && error.code === 'no_deployment'
      if (!early && !signal.aborted) log('error', `Backup failed: ${messageOf(error)}`)
    }
  }
  await keepSchedule({ data, everyMs, make, signal })
  return undefined
}

/** Called between two parts. Aborting removes the unfinished backup. */
function checkNotStopped(signal: AbortSignal): void {
  if (!signal.aborted) return
  throw new BackupError(
    'stopped',
    'Sandlot stopped during the backup.',
    'No action needed: the backup is made later.',
  )
}

function log(level: keyof typeof LEVEL, msg: string, more: Record<string, unknown> = {}): void {
  process.stdout.write(
    `${JSON.stringify({ level: LEVEL[level], time: Date.now(), name: 'backup', ...more, msg })}\n`,
  )
}

try {
  const answer = await main()
  if (answer !== undefined) process.stdout.write(`${JSON.stringify(answer)}\n`)
  if (answer?.did === 'backup' && answer.leftOut.length > 0) process.exitCode = INCOMPLETE
} catch (error) {
  if (error instanceof BackupError || error instanceof SandboxError || error instanceof StorageError) {
    const fix = error instanceof BackupError ? error.fix : 'Then run the same command again.'
    const answer: Answer = { did: 'nothing', code: error.code, message: error.message, fix }
    process.stdout.write(`${JSON.stringify(answer)}\n`)
    process.exitCode = NOTHING_DONE
  } else {
    const text = error instanceof ConfigError ? error.message : messageOf(error)
    process.stderr.write(`${text}\n`)
    process.exitCode = 1
  }
}
