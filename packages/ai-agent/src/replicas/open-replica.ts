/** The replica that this process is, where several share a database. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { messageOf } from '@sandlot/shared/base/errors'
import { randomText } from '@sandlot/shared/base/ids'
import { printOf } from '@sandlot/shared/node/secret-file'
import { type Change, listenToChanges } from '@sandlot/storage/database/changes'
import { isPostgres } from '@sandlot/storage/database/dialect'
import { openSessionReader } from '@sandlot/storage/store/open'
import type { KeyPrints, ReplicaRows } from '@sandlot/storage/replicas/replicas'
import type { Log } from '../log.ts'
import type { Reload } from './ownership.ts'
import { Replica, type ReplicaTimes } from './replica.ts'

interface OpenReplica {
  /** Path of a file, or address of PostgreSQL. */
  database: string
  /** Absent: a new one. */
  id: string | undefined
  address: { url: string; certificate?: string | undefined }
  version: string
  /** Asked once, at the beginning. Never rejects. */
  engine: () => Promise<string | undefined>
  /** Keys of the deployment; the same for all its agents. */
  keys: DeploymentKeys
  rows: ReplicaRows & KeyPrints
  log: Log
  times?: Partial<ReplicaTimes>
}

/**
 * Listens from now on; nothing is claimed before `Replica.begin`. Undefined on SQLite, where this
 * process is the only one. Throws where the keys are not those of the other agents.
 */
export async function openReplica({
  database,
  id,
  keys,
  ...parts
}: OpenReplica): Promise<Replica | undefined> {
  if (!isPostgres(database)) return undefined
  await refuseOtherKeys(keys, parts.rows)
  const reloads = new Reloads()
  let replica: Replica | undefined
  const listener = await listenToChanges({
    where: database,
    schema: 'sessions',
    changed: (changes) => reloads.run(changes),
    woken: () => replica?.wake(),
    problem: (error) =>
      parts.log.warn({ error: messageOf(error) }, 'changes of other agents could not be read; retrying'),
  })
  replica = new Replica({
    ...parts,
    id: id ?? randomText(12),
    onChange: (what, reload) => reloads.add(what, reload),
    stopListening: () => listener.close(),
  })
  return replica
}

/** The user of clients that name none. */
const LOCAL_USER_ID = 'local'

/** The socket on this host of an agent on this database, best the one that has the local user. */
export async function socketOfRunning(database: string): Promise<string | undefined> {
  if (!isPostgres(database)) return undefined
  const reader = await openSessionReader(database)
  try {
    const owner = await reader.replicas.ownerOf(LOCAL_USER_ID)
    const sockets = (await reader.replicas.list())
      .filter(({ living, draining }) => living && !draining)
      .toSorted((a, b) => Number(b.id === owner) - Number(a.id === owner))
      .flatMap(({ url }) => /^ws\+unix:\/\/(.*):/.exec(url)?.[1] ?? [])
    return sockets.find((path) => existsSync(path))
  } finally {
    await reader.close()
  }
}

interface DeploymentKeys {
  id: string
  key: Uint8Array
  /** Sealing keys of people's secrets, the newest first: more than one while they are rotated. */
  sealing: readonly Uint8Array[]
  /** The folder of the keys. */
  folder: string
}

/** Throws where these are not the keys that the database has been used with. */
async function refuseOtherKeys({ id, key, sealing, folder }: DeploymentKeys, rows: KeyPrints): Promise<void> {
  const refuse = (file: string, what: string): never => {
    throw new Error(
      `${join(folder, file)} has not the keys that the database has been used with, so ${what} could not be used. Copy the folder keys from another agent of it or from its backup, or set SANDLOT_KEYS_DIR to it.`,
    )
  }
  if (!(await rows.hasKey('deployment_keys', [printOf(`${id} `, key)])))
    refuse('deployment.json', 'sandboxes and secrets of people')
  if (
    !(await rows.hasKey(
      'sealing_key',
      sealing.map((one) => printOf(one)),
    ))
  )
    refuse('secrets.json', 'secrets of people')
  // A rotation was cut off before it said so: from now on this agent seals with the new key.
  const [newest] = sealing
  if (sealing.length > 1 && newest !== undefined) await rows.changeKey('sealing_key', printOf(newest))
}

class Reloads {
  readonly #reloads = new Map<string, Reload[]>()
  /** Changes that arrived before their reload was added. */
  readonly #early = new Set<string>()
  #all = false

  add(what: string, reload: Reload): void {
    this.#reloads.set(what, [...(this.#reloads.get(what) ?? []), reload])
    if (this.#all || this.#early.has(what)) void reload(undefined)
  }

  async run(changes: readonly Change[]): Promise<void> {
    for (const { what, id } of changes) {
      if (what === 'everything') this.#all = true
      const known = this.#reloads.get(what)
      if (known === undefined) this.#early.add(what)
      const some = what === 'everything' ? [...this.#reloads.values()].flat() : (known ?? [])
      for (const reload of some) await reload(id)
    }
  }
}
