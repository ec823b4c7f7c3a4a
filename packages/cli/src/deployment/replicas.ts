/**
 * Several agents and services of one Sandlot on this machine, which PostgreSQL is needed for: what
 * each is called and where it listens.
 */
import { hostname } from 'node:os'
import type { CliConfig } from '../config.ts'
import { StepError } from '../steps.ts'

/** A machine for trying it; each has its own connections to the database. */
const MOST = 16
/** Part of the name of a socket, whose path is short. */
const LONGEST_HOST = 24

/** Whether chats and accounts are on PostgreSQL. */
export function isOnPostgres({ environment }: Pick<CliConfig, 'environment'>): boolean {
  return (environment['DATABASE_URL'] ?? environment['DATABASE_URL_FILE'] ?? '') !== ''
}

/**
 * Of `--replicas N`. Undefined: another argument than that.
 * @throws StepError where there cannot be so many.
 */
export function readReplicas(args: readonly string[], config: CliConfig): number | undefined {
  if (args.length === 0) return 1
  const [option, text = ''] = args
  if (option !== '--replicas' || args.length !== 2) return undefined
  const count = /^\d{1,3}$/.test(text) ? Number(text) : 0
  if (count < 1 || count > MOST)
    throw new StepError(`--replicas takes a number from 1 to ${MOST}.`, 'Two are enough to try it.')
  if (count > 1 && !isOnPostgres(config))
    throw new StepError(
      'Several agents and services need PostgreSQL: a file is written by one process.',
      'Set DATABASE_URL; docs/postgresql.md says how. Without --replicas there is one of each.',
    )
  if (config.port + count - 1 > 65_535)
    throw new StepError(`There are no ${count} ports from ${config.port} on.`, 'Set PORT to a lower one.')
  return count
}

/** The numbers of the replicas; of the only one undefined. */
export function replicaNumbers(count: number): readonly (number | undefined)[] {
  return count === 1 ? [undefined] : Array.from({ length: count }, (_, place) => place + 1)
}

/** `SANDLOT_REPLICA` of an agent: the same after each start, and another on each machine. */
export function replicaId(
  { environment }: Pick<CliConfig, 'environment'>,
  number: number | undefined,
): string {
  const set = environment['SANDLOT_REPLICA'] ?? ''
  const own = hostname()
    .toLowerCase()
    .replaceAll(/[^a-z0-9-]+/g, '-')
    .slice(0, LONGEST_HOST)
  const base = set === '' ? own : set
  return number === undefined ? base : `${base}-${number}`
}

/** Addresses of the services, where the first one has `url`. */
export function serviceUrls(url: string, count: number): string[] {
  const first = new URL(url)
  return replicaNumbers(count).map((number) => {
    const own = new URL(url)
    own.port = String(Number(first.port === '' ? 80 : first.port) + (number ?? 1) - 1)
    return own.href.replace(/\/$/, '')
  })
}
