/** What a backup says about itself, as the last entry of its archive. */
import { createHash } from 'node:crypto'
import { buffer } from 'node:stream/consumers'
import { Readable } from 'node:stream'
import { accountsMigrations } from '@sandlot/storage/accounts/schema'
import { sessionsMigrations } from '@sandlot/storage/sessions/schema'
import { z } from 'zod'
import { type Entry, readEntries, readEntry } from './archive.ts'
import { BackupError } from './backup-error.ts'
import { seal, sealing } from './sealing.ts'

export const MANIFEST = 'manifest.json'
/**
 * Of the archive as a whole; a database says its own by its migrations. 2: one of PostgreSQL, which
 * earlier versions refuse as newer; with files it is 1 still.
 */
export const FORMATS = { sqlite: 1, postgres: 2 } as const
/** A manifest is some hundred bytes for each workspace. */
const MOST_MANIFEST = 64 * 1024 ** 2

/** Under which name a database is in the data folder, and the migrations that we know of it. */
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
  /** Before it was compressed. */
  rawBytes: z.int(),
  /** Of the bytes in the archive. */
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
}
const part = z.discriminatedUnion('kind', [
  z.object({
    ...common,
    kind: z.literal('database'),
    database: z.enum(['sessions.db', 'accounts.db']),
    migrations: z.array(z.string()),
  }),
  /** Both databases, as pg_dump writes them; the versions are PostgreSQL's. */
  z.object({
    ...common,
    kind: z.literal('postgres'),
    server: z.string(),
    program: z.string(),
    migrations,
  }),
  /** A tar of files: of the data folder, or of settings that are elsewhere. */
  z.object({ ...common, kind: z.enum(['data', 'settings']), seal }),
  /** A tar of one person's files. */
  z.object({
    ...common,
    kind: z.literal('workspace'),
    volume: z.object({ name: z.string(), labels: z.record(z.string(), z.string()) }),
  }),
])
export type Part = z.infer<typeof part>

const manifest = z.object({
  format: z.literal(Object.values(FORMATS)),
  /** Of the databases. */
  dialect: z.enum(['sqlite', 'postgres']).default('sqlite'),
  /** Of the Sandlot that made it. */
  version: z.string(),
  /** The moment of the databases, in ISO 8601. */
  at: z.string(),
  deployment: z.string(),
  sealing,
  parts: z.array(part),
})
export type Manifest = z.infer<typeof manifest>

/** An archive whose every byte is what was written. */
export interface CheckedArchive {
  manifest: Manifest
  /** A part as it is in the archive. */
  read: (part: Part) => AsyncIterable<Buffer>
}

/**
 * Reads the manifest, and every byte that it describes. Throws `BackupError`: `no_backup`, `cut`,
 * `newer`, `damaged`.
 */
export async function checkArchive(path: string): Promise<CheckedArchive> {
  const entries = await readEntries(path)
  const read = await readManifest(path, entries)
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
  return { manifest: read, read: (wanted) => readEntry(path, found(wanted)) }
}

async function readManifest(path: string, entries: ReadonlyMap<string, Entry>): Promise<Manifest> {
  const entry = entries.get(MANIFEST)
  if (entry === undefined || entry.bytes > MOST_MANIFEST)
    throw new BackupError('no_backup', `${path} is no backup of Sandlot.`, 'Give the path of a backup.')
  let json: unknown
  try {
    json = JSON.parse((await buffer(Readable.from(readEntry(path, entry)))).toString('utf8'))
  } catch (error) {
    throw damaged(path, MANIFEST, error)
  }
  const format = z.object({ format: z.int(), version: z.string() }).safeParse(json)
  if (format.success && format.data.format > Math.max(...Object.values(FORMATS)))
    throw newer(path, format.data.version)
  const parsed = manifest.safeParse(json)
  if (!parsed.success) throw damaged(path, MANIFEST, parsed.error)
  return parsed.data
}

/** Throws `BackupError('newer')` for a database that only a later version can read. */
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
    'Restore it with that version, or a later one.',
  )
}

function damaged(path: string, name: string, cause?: unknown): BackupError {
  return new BackupError(
    'damaged',
    `${path} is damaged: ${name} in it is not what was written. Nothing was restored.`,
    'Copy it again from where it was made, or take another backup.',
    { cause },
  )
}
