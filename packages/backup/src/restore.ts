/** Restores a backup into an empty data folder. */
import { closeSync, createWriteStream, existsSync, fsyncSync, lchownSync, mkdirSync, openSync } from 'node:fs'
import { readdirSync, readFileSync, renameSync, rmSync, statfsSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { SANDBOX_BACKEND_NAMES, SANDBOX_BACKENDS } from '@sandlot/shared/config/sandbox-backends'
import type { SandboxBackend } from '@sandlot/sandbox/backend'
import { formatBytes } from '@sandlot/shared/base/format-bytes'
import { inspectPostgres } from '@sandlot/storage/database/postgres-snapshot'
import { lockFile } from '@sandlot/storage/database/lock'
import { z } from 'zod'
import type { OpenWorkspaces } from './backup.ts'
import { asBackupError, BackupError } from './backup-error.ts'
import { dataIn, RESTORING } from './data-folder.ts'
import {
  type CheckedArchive,
  checkArchive,
  isSigned,
  type Manifest,
  type Part,
  refuseNewer,
} from './manifest.ts'
import { type PostgresPlace, programOf, restoreDump } from './pg-process.ts'
import { openSealing, unsealed } from './sealing.ts'
import { decompressed } from './streams.ts'
import { untar } from './tar-process.ts'

interface RestoreOptions {
  file: string
  data: string
  /** Target of the databases; undefined: the data folder. */
  postgres?: PostgresPlace
  passphrase: string
  /** The operator accepts an unsigned backup of an earlier version. */
  unauthenticated?: boolean
  /** Target of workspaces; undefined if they are folders in the data folder. */
  workspaces: OpenWorkspaces | undefined
  /** The gate's folder, if outside of the data folder; receives the deployment's id. */
  engineFolder: string | undefined
  doing: (part: string) => void
}

export interface Restored {
  at: string
  version: string
  workspaces: number
  /** Volumes of workspaces that the backup is without. */
  leftOut: readonly string[]
  /** A warning about unsigned parts. */
  unproven: string | undefined
  /** Folder of settings that were outside of the data folder. */
  settings: string | undefined
}

const ISOLATING = SANDBOX_BACKEND_NAMES.filter((name) => SANDBOX_BACKENDS[name].isolates)

/** Settings from outside of the data folder, for the operator to move. */
const SETTINGS_FOLDER = 'restored-settings'

const journal = z.object({ deployment: z.string(), volumes: z.array(z.string()) })

/**
 * Restores a backup after every byte and the passphrase were verified. A failure leaves the folder
 * empty and no volumes; a killed restore must be repeated before a start. Throws `BackupError`,
 * `SandboxError`.
 */
export async function restoreBackup(options: RestoreOptions): Promise<Restored> {
  const { workspaces } = options
  const opened: Workspaces[] = []
  const open: OpenWorkspaces | undefined =
    workspaces &&
    (async (deployment) => {
      const inventory = await workspaces(deployment)
      opened.push(inventory)
      return inventory
    })
  try {
    return await restore({ ...options, workspaces: open })
  } finally {
    for (const inventory of opened) await inventory.close()
  }
}

async function restore(options: RestoreOptions): Promise<Restored> {
  const { file, data, doing } = options
  doing('reading the backup')
  const archive = await checkArchive(file, async (manifest) => {
    if (!isSigned(manifest) && options.unauthenticated !== true) throw unauthenticated(file)
    return openSealing(options.passphrase, manifest.sealing, isSigned(manifest))
  })
  const { manifest, keys } = archive
  refuseNewer(file, manifest)
  const dump = dumpIn(manifest, options.postgres)
  await checkSeals(archive, keys.seal)
  const workspaces = await options.workspaces?.(manifest.deployment)
  if (workspaces === undefined && manifest.parts.some(({ kind }) => kind === 'workspace'))
    throw new BackupError(
      'failed',
      'The backup has workspaces of containers, which SANDLOT_SANDBOX does not use. Nothing was restored.',
      `Set SANDLOT_SANDBOX to ${ISOLATING.join(' or ')}, then run this again.`,
    )
  mkdirSync(join(data, 'run'), { recursive: true, mode: 0o750 })
  using lock = exclusive(join(data, 'run', 'agent.lock'))
  void lock
  await undoUnfinished(data, options.workspaces)
  refuseFull(data)
  await refuseVolumes(workspaces, manifest.parts)
  const restoreDatabase = dump === undefined ? undefined : await prepareDump(dump, archive)
  checkRoom(data, manifest.parts)

  const begun = { deployment: manifest.deployment, volumes: [] as string[] }
  try {
    writeSynced(join(data, RESTORING), JSON.stringify(begun))
    for (const part of manifest.parts) {
      if (part.kind === 'postgres') continue
      if (part.kind === 'workspace') {
        begun.volumes.push(part.volume.name)
        writeSynced(join(data, RESTORING), JSON.stringify(begun))
      }
      doing(part.kind === 'workspace' ? `the workspace ${part.volume.name}` : part.name)
      await restorePart(part, { archive, key: keys.seal, data, workspaces })
    }
    ownAll(data)
    if (options.engineFolder !== undefined) writeGateId(options.engineFolder, manifest.deployment)
    // Last, in one transaction: an earlier failure or kill leaves the database empty.
    doing('the database')
    await restoreDatabase?.()
  } catch (error) {
    await undoUnfinished(data, options.workspaces)
    throw asBackupError(error, 'nothing was restored')
  }
  rmSync(join(data, RESTORING))
  syncFolder(data)
  const settings = join(data, SETTINGS_FOLDER)
  return {
    at: manifest.at,
    version: manifest.version,
    workspaces: begun.volumes.length,
    leftOut: manifest.leftOut ?? [],
    unproven: isSigned(manifest) ? undefined : UNPROVEN,
    settings: existsSync(settings) ? settings : undefined,
  }
}

const UNPROVEN =
  'It was made by an earlier version, which protected only keys and settings. Chats, accounts, roles and workspaces may have been changed by anyone who could write to the file.'

function unauthenticated(file: string): BackupError {
  return new BackupError(
    'unauthenticated',
    `${file} has no signature. ${UNPROVEN} Nothing was restored.`,
    'If nobody else could write to it, run the same command with --unauthenticated.',
  )
}

type DumpPart = Extract<Part, { kind: 'postgres' }>

/** Undefined if both the backup and this deployment use database files. */
function dumpIn(
  { dialect, parts }: Manifest,
  place: PostgresPlace | undefined,
): { part: DumpPart; place: PostgresPlace } | undefined {
  const part = parts.find((each) => each.kind === 'postgres')
  if (part !== undefined && place !== undefined) return { part, place }
  if (dialect === 'sqlite' && place === undefined) return undefined
  throw place === undefined
    ? new BackupError(
        'other_database',
        'The backup is of PostgreSQL, and DATABASE_URL is not set. Nothing was restored.',
        'Set DATABASE_URL_FILE or DATABASE_URL to an empty database, then run this again.',
      )
    : new BackupError(
        'other_database',
        'The backup is of database files, and DATABASE_URL is set. Nothing was restored.',
        'Unset it and run this again; then move the data with ./sandlot migrate (docs/postgresql.md).',
      )
}

/** Checked before anything is written. Throws `BackupError`, `StorageError`. */
async function prepareDump(
  { part, place }: { part: DumpPart; place: PostgresPlace },
  archive: CheckedArchive,
): Promise<() => Promise<void>> {
  const { server, schemas } = await inspectPostgres(place.url)
  if (schemas.length > 0)
    throw new BackupError(
      'not_empty',
      `The database already has Sandlot data (${schemas.join(', ')}). Nothing was restored.`,
      'Create an empty database with createdb, and set DATABASE_URL to it.',
    )
  if (Number.parseInt(server, 10) < Number.parseInt(part.server, 10))
    throw new BackupError(
      'older_server',
      `The backup is of PostgreSQL ${part.server}, but DATABASE_URL is version ${server}. Nothing was restored.`,
      'Restore it into the same version or a later one.',
    )
  const { path } = programOf('pg_restore', Number.parseInt(part.program, 10), place.machine)
  return () => restoreDump(path, decompressed(archive.read(part)), place)
}

/** Reads sealed parts to the end, where their tags are checked: tar may stop earlier. */
async function checkSeals({ manifest, read }: CheckedArchive, key: Buffer): Promise<void> {
  for (const part of manifest.parts) {
    if (part.kind !== 'data' && part.kind !== 'settings') continue
    try {
      for await (const bytes of unsealed(key, part.seal, read(part))) void bytes
    } catch (error) {
      const message = `The backup is damaged: ${part.name} in it has changed. Nothing was restored.`
      throw new BackupError('damaged', message, 'Use another backup.', { cause: error })
    }
  }
}

type Workspaces = SandboxBackend['inventory']

interface Into {
  archive: CheckedArchive
  key: Buffer
  data: string
  workspaces: Workspaces | undefined
}

async function restorePart(
  part: Exclude<Part, DumpPart>,
  { archive, key, data, workspaces }: Into,
): Promise<void> {
  const bytes = archive.read(part)
  switch (part.kind) {
    case 'database': {
      const path = join(data, part.database)
      await pipeline(decompressed(bytes), createWriteStream(path, { flags: 'wx', mode: 0o600, flush: true }))
      return
    }
    case 'workspace':
      return workspaces?.copies.write(part.volume, decompressed(bytes))
    case 'data':
      return untar(data, decompressed(unsealed(key, part.seal, bytes)))
    case 'settings': {
      const folder = join(data, SETTINGS_FOLDER)
      mkdirSync(folder, { mode: 0o700 })
      return untar(folder, decompressed(unsealed(key, part.seal, bytes)))
    }
  }
}

/** Takes the agent's lock, which excludes agents and other restores. */
function exclusive(path: string): Disposable {
  const lock = lockFile(path)
  if (lock === undefined)
    throw new BackupError(
      'running',
      'Sandlot is running with this data folder. Nothing was restored.',
      'Stop it with ./sandlot down, set SANDLOT_DATA to an empty folder, then run this again.',
    )
  return { [Symbol.dispose]: () => lock.release() }
}

function refuseFull(data: string): void {
  const found = dataIn(data)
  if (found.length === 0) return
  throw new BackupError(
    'not_empty',
    `${data} already has Sandlot data (${found.slice(0, 3).join(', ')}${found.length > 3 ? ' …' : ''}). Nothing was restored.`,
    'Move this folder away, or set SANDLOT_DATA to an empty one.',
  )
}

async function refuseVolumes(workspaces: Workspaces | undefined, parts: readonly Part[]): Promise<void> {
  for (const name of volumeNames(parts)) {
    if ((await workspaces?.copies.exists(name)) !== true) continue
    throw new BackupError(
      'not_empty',
      `The engine already has the workspace ${name}. Nothing was restored.`,
      'If it can be deleted: ./sandlot down --purge with the old data folder. Otherwise use another engine.',
    )
  }
}

function checkRoom(data: string, parts: readonly Part[]): void {
  const sizes = parts.map(({ kind, rawBytes }) =>
    kind === 'workspace' || kind === 'postgres' ? 0 : rawBytes,
  )
  const needed = sizes.reduce((sum, size) => sum + size, 0)
  const { bavail, bsize } = statfsSync(data)
  if (bavail * bsize > needed) return
  throw new BackupError(
    'no_space',
    `${data} has no room for the ${formatBytes(needed)} of this backup. Nothing was restored.`,
    'Free space, or set SANDLOT_DATA to a folder on another disk.',
  )
}

const volumeNames = (parts: readonly Part[]): string[] =>
  parts.flatMap((part) => (part.kind === 'workspace' ? [part.volume.name] : []))

/** Removes everything that a failed or killed restore has written. Its folder was empty. */
async function undoUnfinished(data: string, open: OpenWorkspaces | undefined): Promise<void> {
  const file = join(data, RESTORING)
  if (!existsSync(file)) return
  const begun = journal.safeParse(jsonIn(file))
  // With an incomplete journal, nothing else was written.
  if (begun.success) {
    const workspaces = await open?.(begun.data.deployment)
    await workspaces?.copies.removeLeftHelpers()
    for (const name of begun.data.volumes) await workspaces?.volumes.remove(name)
    for (const name of dataIn(data))
      if (name !== RESTORING) rmSync(join(data, name), { recursive: true, force: true })
  }
  rmSync(file, { force: true })
}

function jsonIn(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch {
    return undefined // truncated by a full disk or a power failure
  }
}

/** Gives everything to the owner of the folder, if run by root. */
function ownAll(folder: string): void {
  if (process.getuid?.() !== 0) return
  const { uid, gid } = statSync(folder)
  const entries = readdirSync(folder, { withFileTypes: true, recursive: true })
  for (const { parentPath, name } of entries) lchownSync(join(parentPath, name), uid, gid)
}

/** Writes the id for the gate, before it generates one. */
function writeGateId(engineFolder: string, deployment: string): void {
  const folder = join(engineFolder, 'run', 'engine')
  mkdirSync(folder, { recursive: true, mode: 0o750 })
  writeFileSync(join(folder, 'deployment'), `${deployment}\n`, { mode: 0o640 })
  ownAll(engineFolder)
}

/** Writes atomically, even over a power failure. */
function writeSynced(path: string, text: string): void {
  const draft = `${path}.new`
  writeFileSync(draft, text, { mode: 0o600, flush: true })
  renameSync(draft, path)
}

function syncFolder(path: string): void {
  const folder = openSync(path, 'r')
  fsyncSync(folder)
  closeSync(folder)
}
