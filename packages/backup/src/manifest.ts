/** The manifest of a backup, the last entry of its archive. */
import { createHash, timingSafeEqual } from 'node:crypto'
import { buffer } from 'node:stream/consumers'
import { Readable } from 'node:stream'
import { isDeploymentId, LABEL, parseName } from '@sandlot/sandbox/names'
import { accountsMigrations } from '@sandlot/storage/accounts/migrations'
import { sessionsMigrations } from '@sandlot/storage/store/migrations'
import { z } from 'zod'
import { type Entry, readEntries, readEntry } from './archive.ts'
import { BackupError } from './backup-error.ts'
import { type BackupKeys, seal, sealing, signed } from './sealing.ts'

export const MANIFEST = 'manifest.json'
/**
 * Format of the archive; that of a database is its migrations. The manifest is signed since 3; 1
 * (with database files) and 2 (PostgreSQL) were not.
 */
const FORMAT = 3
const EARLIER = [1, 2] as const
/** Limit in bytes; a manifest has some hundred per workspace. */
const MOST_MANIFEST = 64 * 1024 ** 2

/** Known migrations of each database, by its name in the data folder. */
const DATABASES = {
  'sessions.db': sessionsMigrations,
  'accounts.db': accountsMigrations,
} as const
export type DatabaseName = 'sessions.db' | 'accounts.db'

const migrations = z.object({ sessions: z.array(z.string()), accounts: z.array(z.string()) })
export type DatabaseMigrations = z.infer<typeof migrations>

const common = {
  name: z.string(),
  bytes: z.int(),
  /** Size before compression. */
  rawBytes: z.int(),
  /** Hash of the bytes in the archive. */
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
}
const part = z.discriminatedUnion('kind', [
  z.object({
    ...common,
    kind: z.literal('database'),
    database: z.enum(['sessions.db', 'accounts.db']),
    migrations: z.array(z.string()),
  }),
  /** Both databases, from pg_dump; the versions are PostgreSQL's. */
  z.object({
    ...common,
    kind: z.literal('postgres'),
    server: z.string(),
    program: z.string(),
    migrations,
  }),
  /** A tar of the data folder, or of settings outside of it. */
  z.object({ ...common, kind: z.enum(['data', 'settings']), seal }),
  /** A tar of one workspace. */
  z.object({
    ...common,
    kind: z.literal('workspace'),
    volume: z.object({ name: z.string(), labels: z.record(z.string(), z.string()) }),
  }),
])
export type Part = z.infer<typeof part>

const manifest = z.object({
  format: z.literal([...EARLIER, FORMAT]),
  dialect: z.enum(['sqlite', 'postgres']).default('sqlite'),
  /** Version of the Sandlot that made it. */
  version: z.string(),
  /** Time of the databases, ISO 8601. */
  at: z.string(),
  deployment: z.string(),
  sealing,
  parts: z.array(part),
  /** Volumes of workspaces that could not be read; absent where there were none. */
  leftOut: z.array(z.string()).optional(),
  /** HMAC of the manifest without this field; since format 3. */
  mac: z.string().optional(),
})
export type Manifest = z.infer<typeof manifest>

export const isSigned = ({ format }: Pick<Manifest, 'format'>): boolean => format === FORMAT

/** JSON with sorted keys, so that equal manifests have equal text. */
function canonical(json: unknown): string {
  const sorted = (_: string, value: unknown): unknown =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : value
  return `${JSON.stringify(json, sorted, 2)}\n`
}

/** The signed text of a manifest. */
export function manifestText(about: Omit<Manifest, 'format' | 'mac'>, key: Buffer): string {
  const unsigned = { ...about, format: FORMAT }
  return canonical({ ...unsigned, mac: signed(key, canonical(unsigned)) })
}

/** Compares every byte, also those that a parser ignores, as blanks or duplicate keys. */
function isAuthentic({ text, json }: ReadManifest, key: Buffer): boolean {
  const { mac, ...unsigned } = json
  const expected = Buffer.from(canonical({ ...unsigned, mac: signed(key, canonical(unsigned)) }))
  const found = Buffer.from(text)
  return mac !== undefined && found.length === expected.length && timingSafeEqual(found, expected)
}

/** A verified archive. */
export interface CheckedArchive {
  manifest: Manifest
  keys: BackupKeys
  /** The raw bytes of a part. */
  read: (part: Part) => AsyncIterable<Buffer>
}

/**
 * Verifies the signature of the manifest, if it has one, and every byte of the parts. `unlock`
 * returns the keys. Throws `BackupError`: `no_backup`, `cut`, `newer`, `damaged`.
 */
export async function checkArchive(
  path: string,
  unlock: (manifest: Manifest) => Promise<BackupKeys>,
): Promise<CheckedArchive> {
  const entries = await readEntries(path)
  const described = await readManifest(path, entries)
  const { manifest: read } = described
  const keys = await unlock(read)
  if (isSigned(read) && (keys.manifest === undefined || !isAuthentic(described, keys.manifest)))
    throw changed(path)
  checkNames(path, read)
  const found = (wanted: Part): Entry => {
    const entry = entries.get(wanted.name)
    if (entry === undefined || entry.bytes !== wanted.bytes) throw damaged(path, wanted.name)
    return entry
  }
  for (const each of read.parts) {
    const hash = createHash('sha256')
    for await (const chunk of readEntry(path, found(each))) hash.update(chunk)
    if (hash.digest('hex') !== each.sha256) throw damaged(path, each.name)
  }
  return { manifest: read, keys, read: (wanted) => readEntry(path, found(wanted)) }
}

/** A restore creates and removes volumes by these names, so they must belong to the deployment. */
function checkNames(path: string, { deployment, parts }: Manifest): void {
  const names = new Set(parts.map(({ name }) => name))
  if (!isDeploymentId(deployment) || names.size < parts.length) throw damaged(path, MANIFEST)
  for (const part of parts) {
    if (part.kind !== 'workspace') continue
    const { name, labels } = part.volume
    const known = parseName(deployment, name)
    const isOurs =
      known?.kind === 'pool' &&
      part.name === `workspaces/${name}.tar.zst` &&
      labels[LABEL.deployment] === deployment &&
      labels[LABEL.role] === 'sandbox' &&
      (labels[LABEL.volume] ?? name) === name &&
      (labels[LABEL.slot] ?? known.slot) === known.slot
    if (!isOurs)
      throw new BackupError(
        'damaged',
        `${path} has a workspace ${JSON.stringify(name)} that does not belong to the deployment ${deployment}. Nothing was restored.`,
        'Use another backup. If you have just made it: remove the volume of that name, or its Sandlot labels.',
      )
  }
}

interface ReadManifest {
  manifest: Manifest
  text: string
  /** The parsed JSON, unknown fields included. */
  json: Record<string, unknown>
}

async function readManifest(path: string, entries: ReadonlyMap<string, Entry>): Promise<ReadManifest> {
  const entry = entries.get(MANIFEST)
  if (entry === undefined || entry.bytes > MOST_MANIFEST)
    throw new BackupError('no_backup', `${path} is not a Sandlot backup.`, 'Pass the path of a backup.')
  const text = (await buffer(Readable.from(readEntry(path, entry)))).toString('utf8')
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch (error) {
    throw damaged(path, MANIFEST, error)
  }
  const format = z.object({ format: z.int(), version: z.string() }).safeParse(json)
  if (format.success && format.data.format > FORMAT) throw newer(path, format.data.version)
  const parsed = manifest.safeParse(json)
  if (!parsed.success) throw damaged(path, MANIFEST, parsed.error)
  return { manifest: parsed.data, text, json: z.record(z.string(), z.unknown()).parse(json) }
}

/** Throws `BackupError('newer')` for a database with unknown migrations. */
export function refuseNewer(path: string, { parts, version }: Manifest): void {
  for (const each of parts) {
    if (each.kind === 'database') refuse(each.database, each.migrations)
    if (each.kind !== 'postgres') continue
    refuse('sessions.db', each.migrations.sessions)
    refuse('accounts.db', each.migrations.accounts)
  }
  function refuse(database: DatabaseName, names: readonly string[]): void {
    const unknown = names.filter((name) => !Object.hasOwn(DATABASES[database], name))
    if (unknown.length > 0) throw newer(path, version, `${database} has ${unknown.join(', ')}`)
  }
}

function newer(path: string, version: string, detail?: string): BackupError {
  return new BackupError(
    'newer',
    `${path} was made by a newer Sandlot (${version}${detail === undefined ? '' : `; its ${detail}`}). Nothing was restored.`,
    'Restore it with that version or a later one.',
  )
}

function changed(path: string): BackupError {
  return new BackupError(
    'damaged',
    `${path} was changed after it was made: the signature of its manifest is invalid. Nothing was restored.`,
    'Copy it again from its source, or use another backup, and find out who could write to this file.',
  )
}

function damaged(path: string, name: string, cause?: unknown): BackupError {
  return new BackupError(
    'damaged',
    `${path} is damaged: ${name} in it has changed. Nothing was restored.`,
    'Copy it again from its source, or use another backup.',
    { cause },
  )
}
