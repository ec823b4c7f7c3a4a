/** Names and addresses of several agents and services on this machine, which need PostgreSQL. */
import { hostname } from 'node:os'
import type { CliConfig } from '../config.ts'
import { StepError } from '../steps.ts'

/** Each has its own connections to the database. */
const MOST = 16
/** Part of the path of a socket, which has a length limit. */
const LONGEST_HOST = 24

export function isOnPostgres({ environment }: Pick<CliConfig, 'environment'>): boolean {
  return (environment['DATABASE_URL'] ?? environment['DATABASE_URL_FILE'] ?? '') !== ''
}

/**
 * Parses `--replicas N`. Undefined for other arguments.
 * @throws StepError when N is not possible here.
 */
export function readReplicas(args: readonly string[], config: CliConfig): number | undefined {
  if (args.length === 0) return 1
  const [option, text = ''] = args
  if (option !== '--replicas' || args.length !== 2) return undefined
  const count = /^\d{1,3}$/.test(text) ? Number(text) : 0
  if (count < 1 || count > MOST)
    throw new StepError(`--replicas takes a number from 1 to ${MOST}.`, 'To try it: --replicas 2')
  if (count > 1 && !isOnPostgres(config))
    throw new StepError(
      'Several agents and services need PostgreSQL: only one process can write to a database file.',
      'Set DATABASE_URL (docs/postgresql.md), or leave --replicas out.',
    )
  if (config.port + count - 1 > 65_535)
    throw new StepError(
      `There are fewer than ${count} ports from ${config.port} on.`,
      'Set PORT to a lower number.',
    )
  return count
}

/** The numbers of the replicas; a single one has none. */
export function replicaNumbers(count: number): readonly (number | undefined)[] {
  return count === 1 ? [undefined] : Array.from({ length: count }, (_, place) => place + 1)
}

/** `SANDLOT_REPLICA` of an agent: stable over restarts, different on each machine. */
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

/** Addresses of the services; the first has `url`. */
export function serviceUrls(url: string, count: number): string[] {
  const first = new URL(url)
  return replicaNumbers(count).map((number) => {
    const own = new URL(url)
    own.port = String(Number(first.port === '' ? 80 : first.port) + (number ?? 1) - 1)
    return own.href.replace(/\/$/, '')
  })
}
