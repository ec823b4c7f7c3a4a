/** Makes a backup while Sandlot runs. */
import { createReadStream, mkdirSync, mkdtempSync, readdirSync, rmSync, statfsSync, statSync } from 'node:fs'
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { basename, dirname, join, resolve } from 'node:path'
import type { SandboxBackend } from '@sandlot/sandbox/backend'
import { SandboxError } from '@sandlot/sandbox/errors'
import { formatBytes } from '@sandlot/shared/base/format-bytes'
import { copyTogether } from '@sandlot/storage/database/copy-together'
import { lockFile } from '@sandlot/storage/database/lock'
import { lockBackups } from '@sandlot/storage/database/postgres-snapshot'
import { type ArchiveWriter, writeArchive } from './archive.ts'
import { asBackupError, BackupError } from './backup-error.ts'
import { databasePath, deploymentOf, tarArguments } from './data-folder.ts'
import { checkArchive, type DatabaseName, MANIFEST, manifestText, type Part } from './manifest.ts'
import { beginDump, type PostgresPlace } from './pg-process.ts'
import { newSealing, type Seal, sealed } from './sealing.ts'
import { compressed, counted } from './streams.ts'
import { tarOf } from './tar-process.ts'

/** The workspaces of a deployment, where they are; the caller closes it. */
export type OpenWorkspaces = (deployment: string) => Promise<SandboxBackend['inventory']>

interface BackupOptions {
  data: string
  /** Undefined: database files in the data folder. */
  postgres?: PostgresPlace
  /** Target folder, created if missing. */
  to: string
  passphrase: string
  /** The folder of keys, if outside of `data`. */
  keys?: string | undefined
  /** Settings outside of the data folder; missing files are skipped. */
  settings: readonly string[]
  /** Undefined if workspaces are folders in the data folder. */
  workspaces: OpenWorkspaces | undefined
  /** Version of this Sandlot. */
  version: string
  /** Reports the current part. */
  doing: (part: string) => void
}

export interface MadeBackup {
  file: string
  /** Time of the databases. */
  at: string
  bytes: number
  workspaces: number
  /** Workspaces that could not be read; the backup has everything else. */
  leftOut: LeftOut[]
}

interface LeftOut {
  /** Name of the volume. */
  name: string
  message: string
}

const RETRIES = 2
const RETRY_MS = 2_000

const NAMES: readonly DatabaseName[] = ['sessions.db', 'accounts.db']

/**
 * Makes a backup, and verifies every byte before it gets its name. A failure leaves no file. Throws
 * `BackupError`, `StorageError`, `SandboxError`.
 */
export async function makeBackup(options: BackupOptions): Promise<MadeBackup> {
  const { data, keys, postgres } = options
  const to = resolve(options.to)
  const deployment = deploymentOf(data, postgres === undefined, keys)
  mkdirSync(join(data, 'run'), { recursive: true, mode: 0o750 })
  const lock = lockFile(join(data, 'run', 'backup.lock'))
  if (lock === undefined) throw alreadyRunning()
  try {
    // Backups with other data folders: on a cluster each Job has its own.
    await using shared = postgres && (await lockBackups(postgres.url))
    if (postgres !== undefined && shared === undefined) throw alreadyRunning()
    mkdirSync(to, { recursive: true, mode: 0o700 })
    removeUnfinished(to, deployment)
    if (postgres === undefined) checkRoom(data, to)
    return await make({ ...options, to, deployment, signal: shared?.lost })
  } catch (error) {
    throw asBackupError(error, `no backup was made in ${to}`)
  } finally {
    lock.release()
  }
}

function alreadyRunning(): BackupError {
  return new BackupError('running', 'Another backup is in progress.', 'Wait until it has finished.')
}

type Making = BackupOptions & {
  deployment: string
  /** Aborts when another backup may begin. */
  signal: AbortSignal | undefined
}

async function make(options: Making): Promise<MadeBackup> {
  const { data, to, deployment, doing } = options
  const work = mkdtempSync(join(to, `.making-${deployment}-`))
  let archive: ArchiveWriter | undefined
  let unfinished = ''
  try {
    const { keys, sealing } = await newSealing(options.passphrase)
    doing('the databases')
    const open = async (moment: string): Promise<ArchiveWriter> => {
      unfinished = join(to, `sandlot-${deployment}-${moment.replaceAll(/[-:]|\.\d+/g, '')}.tar.partial`)
      return (archive = await writeArchive(unfinished, options.signal))
    }
    const { at, parts } = await (options.postgres === undefined
      ? addFiles(data, work, open)
      : addDump(options.postgres, open))
    if (archive === undefined) throw new Error('there is no archive')
    doing('keys and settings')
    parts.push({
      ...(await addSealed(archive, 'data', tarOf(tarArguments(data, to, options.keys)), keys.seal)),
      kind: 'data',
    })
    const settings = options.settings.filter((file) => statSync(file, { throwIfNoEntry: false }))
    if (settings.length > 0) {
      const names = settings.flatMap((file) => ['-C', dirname(resolve(file)), basename(file)])
      parts.push({ ...(await addSealed(archive, 'settings', tarOf(names), keys.seal)), kind: 'settings' })
    }
    const { parts: workspaces, leftOut } = await addWorkspaces(archive, options)
    parts.push(...workspaces)
    const dialect = options.postgres === undefined ? 'sqlite' : 'postgres'
    const { version } = options
    const names = leftOut.length === 0 ? undefined : leftOut.map(({ name }) => name)
    const manifest = manifestText(
      { dialect, version, at, deployment, sealing, parts, leftOut: names },
      keys.manifest,
    )
    await archive.add(MANIFEST, Readable.from([Buffer.from(manifest)]))
    await archive.seal()
    doing('verifying the backup')
    await checkArchive(unfinished, async () => keys)
    const path = unfinished.replace(/\.tar\.partial$/, names === undefined ? '.tar' : `${INCOMPLETE}.tar`)
    await archive.publish(path)
    return { file: path, at, bytes: statSync(path).size, workspaces: workspaces.length, leftOut }
  } catch (error) {
    await archive?.abandon()
    throw error
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

/** Begins the archive for this time. */
type OpenArchive = (at: string) => Promise<ArchiveWriter>

async function addFiles(
  data: string,
  work: string,
  open: OpenArchive,
): Promise<{ at: string; parts: Part[] }> {
  const copies = NAMES.map((name) => ({ path: databasePath(data, name), target: join(work, name) }))
  const at = new Date().toISOString()
  const copied = await copyTogether(copies)
  const archive = await open(at)
  const parts: Part[] = []
  for (const [place, name] of NAMES.entries()) {
    const migrations = copied[place]?.migrations ?? []
    const copy = join(work, name)
    const added = await add(archive, `${name}.zst`, createReadStream(copy))
    rmSync(copy)
    parts.push({ ...added, kind: 'database', database: name, migrations })
  }
  return { at, parts }
}

async function addDump(place: PostgresPlace, open: OpenArchive): Promise<{ at: string; parts: Part[] }> {
  const { at, server, program, migrations, bytes, close } = await beginDump(place)
  try {
    const archive = await open(at)
    const added = await add(archive, 'postgres.dump.zst', bytes)
    return { at, parts: [{ ...added, kind: 'postgres', server, program, migrations }] }
  } finally {
    await close()
  }
}

/** One that cannot be read, because its node is lost, for example, is left out. */
async function addWorkspaces(
  archive: ArchiveWriter,
  options: Making,
): Promise<{ parts: Part[]; leftOut: LeftOut[] }> {
  const parts: Part[] = []
  const leftOut: LeftOut[] = []
  const inventory = await options.workspaces?.(options.deployment)
  if (inventory === undefined) return { parts, leftOut }
  const { volumes, copies } = inventory
  try {
    await copies.removeLeftHelpers()
    const all = await volumes.list()
    for (const [place, volume] of all.entries()) {
      options.doing(`workspace ${place + 1} of ${all.length}`)
      const name = `workspaces/${volume.name}.tar.zst`
      try {
        const added = await untilReached(() => add(archive, name, copies.read(volume.name)))
        parts.push({ ...added, kind: 'workspace', volume })
      } catch (error) {
        if (!(error instanceof SandboxError)) throw error
        // Throws where the engine does not answer: then nothing is left out, the backup fails.
        if (error.unreachable) await volumes.list()
        leftOut.push({ name: volume.name, message: error.message })
      }
    }
    return { parts, leftOut }
  } finally {
    await inventory.close()
  }
}

/** Again where the connection to the engine broke. Of a failed attempt nothing stays. */
async function untilReached<T>(attempt: () => Promise<T>, left = RETRIES): Promise<T> {
  try {
    return await attempt()
  } catch (error) {
    if (left === 0 || !(error instanceof SandboxError && error.unreachable)) throw error
    await sleep(RETRY_MS)
    return untilReached(attempt, left - 1)
  }
}

interface Added {
  name: string
  bytes: number
  rawBytes: number
  sha256: string
}

async function add(archive: ArchiveWriter, name: string, source: AsyncIterable<Uint8Array>): Promise<Added> {
  const raw = counted(source)
  const written = await archive.add(name, compressed(raw.bytes))
  return { name, ...written, rawBytes: raw.count() }
}

async function addSealed(
  archive: ArchiveWriter,
  name: string,
  source: AsyncIterable<Uint8Array>,
  key: Buffer,
): Promise<Added & { seal: Seal }> {
  const raw = counted(source)
  const secret = sealed(key, compressed(raw.bytes))
  const file = `${name}.tar.zst.sealed`
  const written = await archive.add(file, secret.bytes)
  return { name: file, ...written, rawBytes: raw.count(), seal: secret.seal() }
}

/** Removes the leftovers of a killed backup. The caller holds its lock. */
function removeUnfinished(to: string, deployment: string): void {
  for (const name of readdirSync(to)) {
    const ours = name.startsWith(`.making-${deployment}-`)
    if (ours || (isBackupOf(name.replace(/\.partial$/, ''), deployment) && name.endsWith('.partial')))
      rmSync(join(to, name), { recursive: true })
  }
}

/** End of the name of a backup without some workspaces. */
const INCOMPLETE = '-incomplete'
const NAME = /-(\d{8})T(\d{6})Z(?:-incomplete)?\.tar$/

const isBackupOf = (name: string, deployment: string): boolean =>
  name.startsWith(`sandlot-${deployment}-`) && NAME.test(name)

/** Requires room for the copies of both databases; other needs are unknown here. */
function checkRoom(data: string, to: string): void {
  const sizes = NAMES.map((name) => statSync(databasePath(data, name), { throwIfNoEntry: false })?.size ?? 0)
  const needed = sizes.reduce((sum, size) => sum + size, 0)
  const { bavail, bsize } = statfsSync(to)
  if (bavail * bsize > needed) return
  throw new BackupError(
    'no_space',
    `${to} has no room for the databases (${formatBytes(needed)}); no backup was made.`,
    'Free space, or use another disk: ./sandlot backup --to DIR',
  )
}

/** Backups of a deployment in a folder, oldest first, by the time in their names. */
export function backupsIn(folder: string, deployment: string): { file: string; at: string; bytes: number }[] {
  const names = readdirSync(folder).filter((name) => isBackupOf(name, deployment))
  return names.toSorted().flatMap((name) => {
    const file = join(folder, name)
    const found = statSync(file, { throwIfNoEntry: false })
    const [, day = '', time = ''] = NAME.exec(name) ?? []
    const at = `${day.replace(/(....)(..)/, '$1-$2-')}T${time.replace(/(..)(..)/, '$1:$2:')}Z`
    return found === undefined ? [] : [{ file, at, bytes: found.size }]
  })
}

/**
 * Removes all but the newest `keep` backups of a deployment, and all but as many incomplete ones: a
 * complete one may have what they lack. Returns their names.
 */
export function removeOld(to: string, deployment: string, keep: number): string[] {
  const all = backupsIn(to, deployment)
  const isIncomplete = ({ file }: { file: string }): boolean => file.endsWith(`${INCOMPLETE}.tar`)
  const old = [all.filter(isIncomplete), all.filter((one) => !isIncomplete(one))].flatMap((some) =>
    some.slice(0, Math.max(0, some.length - keep)),
  )
  for (const { file } of old) rmSync(file)
  return old.map(({ file }) => basename(file))
}
