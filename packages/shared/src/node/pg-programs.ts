/** PostgreSQL's own programs: their location, and `DATABASE_URL` in their format. */
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import type { Environment } from '../config.ts'

type PgProgram = 'pg_dump' | 'pg_restore' | 'psql'

interface FoundProgram {
  path: string
  /** Printed form, like `15.10`. */
  version: string
  major: number
}

/** Debian has a folder for each version, none of them in PATH. */
const DEBIAN = '/usr/lib/postgresql'
/** Certificate authorities of the machine, on Debian. */
const AUTHORITIES = '/etc/ssl/certs/ca-certificates.crt'

/** Names the required and the installed version, and the next step. */
export class NoPgProgram extends Error {
  override readonly name = 'NoPgProgram'
  readonly fix: string

  constructor(message: string, fix: string) {
    super(message)
    this.fix = fix
  }
}

/**
 * The oldest installed one of `major` or later: none can read a later version's output, or talk to
 * a later server. Throws `NoPgProgram`.
 */
export function findPgProgram(name: PgProgram, major: number, environment: Environment): FoundProgram {
  const folders = [
    ...(existsSync(DEBIAN) ? readdirSync(DEBIAN).map((version) => join(DEBIAN, version, 'bin')) : []),
    ...(environment['PATH'] ?? '').split(delimiter).filter((folder) => folder !== ''),
  ]
  const paths = [...new Set(folders.map((folder) => join(folder, name)))].filter((path) => existsSync(path))
  const all = paths.flatMap(versionOf).toSorted((one, other) => one.major - other.major)
  const found = all.find((each) => each.major >= major)
  if (found !== undefined) return found
  const there = all.at(-1)
  throw new NoPgProgram(
    `${name} of PostgreSQL ${major} or later is needed, and ${there === undefined ? 'there is none on this machine' : `this machine has only that of ${there.version}`}.`,
    `Debian and Ubuntu: apt-get install postgresql-client-${major} (docs/postgresql.md says from where).`,
  )
}

function versionOf(path: string): FoundProgram[] {
  try {
    const said = execFileSync(path, ['--version'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
    const version = /\(PostgreSQL\) (\d+\S*)/.exec(said)?.[1]
    return version === undefined ? [] : [{ path, version, major: Number.parseInt(version, 10) }]
  } catch {
    return [] // one that cannot be run is none
  }
}

/**
 * `DATABASE_URL` for libpq: an address without a password, which others could see in the list of
 * processes, and an environment with it.
 */
export function libpqTarget(
  databaseUrl: string,
  machine: Environment,
): { dbname: string; environment: Environment } {
  const url = new URL(databaseUrl)
  const password = url.searchParams.get('password') ?? decodeURIComponent(url.password)
  url.password = ''
  // Parameters of our own library only.
  for (const name of ['password', 'uselibpqcompat']) url.searchParams.delete(name)
  if (url.searchParams.get('sslmode') === 'no-verify') url.searchParams.set('sslmode', 'require')
  const authorities = [machine['SSL_CERT_FILE'], machine['NODE_EXTRA_CA_CERTS'], AUTHORITIES].find(
    (file) => file !== undefined && file !== '' && existsSync(file),
  )
  return {
    dbname: url.href,
    environment: {
      LC_ALL: 'C',
      PATH: machine['PATH'] ?? '',
      PGAPPNAME: 'sandlot backup',
      PGCONNECT_TIMEOUT: '10',
      PGPASSWORD: password === '' ? undefined : password,
      // libpq looks only into the user's home.
      PGSSLROOTCERT: authorities,
    },
  }
}
