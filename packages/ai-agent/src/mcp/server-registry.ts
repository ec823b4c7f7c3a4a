/**
 * The servers that were added on the page, beside those of the configuration: those of the
 * deployment, and each person's own. They change while the agent runs.
 */
import { createHash } from 'node:crypto'
import { SerialQueue } from '@sandlot/shared/async/serial-queue'
import { SandlotError } from '@sandlot/shared/base/errors'
import { randomText } from '@sandlot/shared/base/ids'
import { isPrivateHost } from '@sandlot/shared/node/addresses'
import {
  type AddedServer,
  type ServerScope,
  type ServerValues,
  serverValues,
} from '@sandlot/shared/admin/mcp-servers'
import type { OwnServers } from '@sandlot/shared/account/agent-settings'
import type { AuditFacts, NewAudit } from '@sandlot/shared/admin/audit'
import type { McpServerRecord, McpServerRows } from '@sandlot/storage/people/mcp-servers'
import { mcpServersSection } from './config.ts'
import { type ServerSpec, type Template, addedServerSpec, needsUser, valueTemplate } from './server-spec.ts'
import { folded } from './session-servers.ts'
import type { Log } from '../log.ts'

/** The owner of the deployment's servers: no person has this id. */
const DEPLOYMENT = 'deployment:mcp'
const MOST: Record<ServerScope, number> = { own: 20, deployment: 100 }

interface ServerRegistryParts {
  rows: McpServerRows
  secrets: {
    get(userId: string, name: string): Promise<string | undefined>
    set(userId: string, name: string, value: string | undefined): Promise<void>
    /** Removes them for every user. */
    removeNamed(names: readonly string[]): Promise<void>
  }
  /** Servers of the configuration. */
  configured: readonly ServerSpec[]
  /** Servers that this person may add. */
  may: (userId: string) => OwnServers
  /** Called when the set of servers has changed. */
  changed: () => void
  /** Epoch milliseconds. */
  now: () => number
  log: Log
}

/** The author of a change. */
export type Actor = Pick<NewAudit, 'who' | 'from'>

/** One that was added; without `spec` it cannot be used. */
export interface RegistryEntry extends McpServerRecord {
  spec: ServerSpec | undefined
  hasClientSecret: boolean
  /** Why it is not used. */
  why?: string
}

export class ServerRegistry {
  readonly #parts: ServerRegistryParts
  readonly #writes = new SerialQueue()
  #entries: readonly RegistryEntry[] = []
  #deployment: readonly ServerSpec[]
  /** Positions of servers whose connection was changed since the start, by id. */
  readonly #places = new Map<string, number>()
  /** Ids of those that another process has changed, and whose values may be the old ones still. */
  readonly #reread = new Set<string>()

  static async open(parts: ServerRegistryParts): Promise<ServerRegistry> {
    const registry = new ServerRegistry(parts)
    for (const record of await parts.rows.all()) await registry.#keep(record, undefined)
    return registry
  }

  private constructor(parts: ServerRegistryParts) {
    this.#parts = parts
    this.#deployment = parts.configured
  }

  /** Those of the configuration and those that were added for all, sorted by name. */
  get deployment(): readonly ServerSpec[] {
    return this.#deployment
  }

  /** Those of the configuration: what is added does not change them. */
  get configured(): readonly ServerSpec[] {
    return this.#parts.configured
  }

  /** Those that this person has added and may use now, sorted by name. */
  own(userId: string): readonly ServerSpec[] {
    if (this.#parts.may(userId) === 'none') return []
    const entries = this.list('own', userId).filter(({ server, why }) => server.enabled && why === undefined)
    return entries.flatMap(({ spec }) => spec ?? [])
  }

  may(userId: string): OwnServers {
    return this.#parts.may(userId)
  }

  most(of: ServerScope): number {
    return MOST[of]
  }

  /** All that were added, also those that are not used, sorted by name. */
  list(of: ServerScope, userId: string): readonly RegistryEntry[] {
    const theirs = this.#entries.filter(({ ownerId }) => ownerId === ownerOf(of, userId))
    const sorted = theirs.toSorted((a, b) => (a.server.name < b.server.name ? -1 : 1))
    if (of === 'deployment') return sorted
    const taken = new Set(this.#deployment.map(({ name }) => folded(name)))
    return sorted.map((entry) =>
      taken.has(folded(entry.server.name))
        ? { ...entry, why: 'This Sandlot has a server of this name now: give yours another one.' }
        : entry,
    )
  }

  /**
   * Adds a server (`id` absent, `revision` 0) or changes one, from the next prompt on. Values that
   * are not given stay. Returns its id. Throws `conflict`, `bad_request`, `forbidden`, `not_found`.
   */
  put(
    of: ServerScope,
    userId: string,
    server: AddedServer,
    { id, revision, values }: { id?: string | undefined; revision: number; values: ServerValues },
    actor?: Actor,
  ): Promise<string> {
    return this.#writes.run(async () => {
      const { rows, secrets, now } = this.#parts
      const ownerId = ownerOf(of, userId)
      const before = this.#entries.find((one) => one.id === id && one.ownerId === ownerId)
      if (id !== undefined && before === undefined)
        throw new SandlotError('not_found', 'This server no longer exists.')
      this.#check(of, userId, server, before)
      checkValues(server, values)
      const stored = before === undefined ? EMPTY : await this.#valuesOf(before).catch(() => EMPTY)
      const wanted = mergedValues(server, stored, values)
      const usesStored =
        wanted.clientSecret !== values.clientSecret ||
        Object.keys(wanted.named).some((name) => !Object.hasOwn(values.named, name))
      if (before !== undefined && usesStored && targetOf(before.server) !== targetOf(server))
        throw new SandlotError('bad_request', 'The address has changed. Enter the values and secrets again.')
      const record = { id: before?.id ?? `m_${randomText(16)}`, ownerId, revision: revision + 1, server }
      const audit = actor && {
        ...actor,
        what: 'server_changed' as const,
        whom: { id: record.id, name: server.name },
        before: before && factsOf(before),
        after: { ...factsOf(record), values: [...Object.keys(values.named), ...secretWord(values)] },
      }
      if (!(await rows.put(record, now(), audit))) {
        await this.#read()
        throw new SandlotError('conflict', 'This server has been changed. Load it again.')
      }
      const isEmpty = wanted.clientSecret === undefined && Object.keys(wanted.named).length === 0
      await secrets.set(ownerId, secretNameOf(record.id), isEmpty ? undefined : JSON.stringify(wanted))
      const changedValues = JSON.stringify(wanted) !== JSON.stringify(stored)
      await this.#keep(record, changedValues ? undefined : before)
      this.#parts.changed()
      return record.id
    })
  }

  /** Silent where there is none. */
  remove(of: ServerScope, userId: string, id: string, actor?: Actor): Promise<void> {
    return this.#writes.run(async () => {
      const entry = this.#entries.find((one) => one.id === id && one.ownerId === ownerOf(of, userId))
      if (entry === undefined) return
      const whom = { id, name: entry.server.name }
      const audit = actor && { ...actor, what: 'server_removed' as const, whom, before: factsOf(entry) }
      await this.#parts.rows.remove(id, audit)
      await this.#parts.secrets.set(entry.ownerId, secretNameOf(id), undefined)
      await this.#parts.secrets.removeNamed(
        ['tokens', 'client', 'sign-ins'].map((what) => `mcp:${id}:${what}`),
      )
      this.#become(this.#entries.filter((one) => one !== entry))
      this.#parts.changed()
    })
  }

  /**
   * Reads again what another process may have changed, or their values, which are stored after
   * them. Rejects when the store fails.
   */
  reload(what: 'servers' | 'values'): Promise<void> {
    return this.#writes.run(async () => {
      if (what === 'servers') return this.#read()
      const changed = this.#entries.filter(({ id }) => this.#reread.has(id))
      this.#reread.clear()
      for (const { id, ownerId, revision, server } of changed)
        await this.#keep({ id, ownerId, revision, server }, undefined)
      if (changed.length > 0) this.#parts.changed()
    })
  }

  /** Forgets a removed person; their rows are removed with the rest of them. */
  forget(userId: string): void {
    this.#become(this.#entries.filter(({ ownerId }) => ownerId !== userId))
  }

  async #read(): Promise<void> {
    const records = await this.#parts.rows.all()
    const before = new Map(this.#entries.map((entry) => [entry.id, entry]))
    const isSame = ({ id, revision }: McpServerRecord): boolean => before.get(id)?.revision === revision
    if (records.length === before.size && records.every(isSame)) return
    this.#entries = this.#entries.filter(({ id }) => records.some((record) => record.id === id))
    for (const record of records) {
      if (isSame(record)) continue
      await this.#keep(record, undefined)
      this.#reread.add(record.id)
    }
    this.#become(this.#entries)
    this.#parts.changed()
  }

  #check(of: ServerScope, userId: string, server: AddedServer, before: RegistryEntry | undefined): void {
    const { name, connection } = server
    const others = this.list(of, userId).filter(({ id }) => id !== before?.id)
    if (before === undefined && others.length >= MOST[of])
      throw new SandlotError('bad_request', `There can be ${MOST[of]} servers. Remove one first.`)
    const fixed = of === 'own' ? this.#deployment : this.#parts.configured
    const taken = [...fixed.map((spec) => spec.name), ...others.map((one) => one.server.name)]
    const same = taken.find((one) => folded(one) === folded(name))
    if (same !== undefined)
      throw new SandlotError('conflict', `There is a server “${same}” already: choose another name.`)
    if (of === 'deployment') return
    const may = this.#parts.may(userId)
    if (may === 'none')
      throw new SandlotError('forbidden', 'An administrator has not allowed servers of your own.')
    if (connection.kind !== 'http') return
    if (connection.auth.type === 'client-credentials')
      throw new SandlotError('bad_request', 'Only this Sandlot itself can sign in to a server as a client.')
    const { hostname } = new URL(connection.url)
    if (may === 'public' && isPrivateHost(hostname))
      throw new SandlotError(
        'bad_request',
        `${hostname} is not a public address. Only an administrator can add a server there, or allow you to.`,
      )
  }

  /** `before`: what it was, where its values are the same. */
  async #keep(record: McpServerRecord, before: RegistryEntry | undefined): Promise<void> {
    const same =
      before?.spec !== undefined &&
      before.server.name === record.server.name &&
      JSON.stringify(before.server.connection) === JSON.stringify(record.server.connection)
    const entry = same ? { ...before, ...record } : await this.#entryOf(record)
    const others = this.#entries.filter(({ id }) => id !== record.id)
    this.#become([...others, entry])
  }

  #become(entries: readonly RegistryEntry[]): void {
    this.#entries = entries
    const added = this.list('deployment', '').filter(({ server }) => server.enabled)
    const specs = [...this.#parts.configured, ...added.flatMap(({ spec }) => spec ?? [])]
    this.#deployment = specs.toSorted((a, b) => (a.name < b.name ? -1 : 1))
  }

  async #entryOf(record: McpServerRecord): Promise<RegistryEntry> {
    const { id, ownerId, server } = record
    const { name, connection } = server
    let values = EMPTY
    try {
      values = await this.#valuesOf(record)
    } catch {
      this.#parts.log.warn({ server: name }, 'values of an MCP server cannot be opened; enter them again')
    }
    const needsSecret =
      connection.kind === 'http' && connection.auth.type !== 'none' && connection.auth.clientId !== undefined
    const clientSecret = needsSecret ? values.clientSecret : undefined
    const read = mcpServersSection.safeParse({ [name]: configOf(server, clientSecret) })
    const config = read.data?.[name]
    const entry = { ...record, hasClientSecret: clientSecret !== undefined }
    if (config === undefined)
      return { ...entry, spec: undefined, why: 'It is not complete: enter its client secret again.' }
    const times = (this.#places.get(id) ?? 0) + 1
    this.#places.set(id, times)
    const spec = addedServerSpec(name, config, {
      ownerId: ownerId === DEPLOYMENT ? undefined : ownerId,
      recordsAs: id,
      // Another place for a program that starts while its predecessor still has calls.
      place: times === 1 ? `added/${id}` : `added/${id}~${times}`,
      // Remembered approvals of one's own server are for its present address or program.
      ruleId: ownerId === DEPLOYMENT ? undefined : `${name}@${digest(connection)}`,
      chosen: () => this.#entries.find((one) => one.id === id)?.server ?? server,
      perUser: Object.values(templatesOf(values)).some(needsUser),
      values: async () => templatesOf(await this.#valuesOf(record)),
    })
    return { ...entry, spec }
  }

  /** Throws where they cannot be opened. */
  async #valuesOf({ id, ownerId }: Pick<McpServerRecord, 'id' | 'ownerId'>): Promise<ServerValues> {
    const json = await this.#parts.secrets.get(ownerId, secretNameOf(id))
    return json === undefined ? EMPTY : serverValues.parse(JSON.parse(json))
  }
}

/** Facts for the audit log: names of values, an address without its parameters. */
function factsOf({ ownerId, server: { connection, ...server } }: McpServerRecord): AuditFacts {
  const of = ownerId === DEPLOYMENT ? 'deployment' : 'own'
  if (connection.kind === 'sandbox') return { of, ...server, ...connection }
  const { origin, pathname } = new URL(connection.url)
  return { of, ...server, ...connection, url: `${origin}${pathname}` }
}

function secretWord({ clientSecret }: ServerValues): string[] {
  return clientSecret === undefined ? [] : ['client secret']
}

const EMPTY: ServerValues = { named: {} }

function ownerOf(of: ServerScope, userId: string): string {
  return of === 'own' ? userId : DEPLOYMENT
}

/** No name that a person can choose for a secret. */
function secretNameOf(id: string): string {
  return `mcp-server:${id}`
}

/** Those that the server names, new or kept. Throws `bad_request` for one that is missing. */
function mergedValues(
  { connection }: AddedServer,
  stored: ServerValues,
  { named, clientSecret }: ServerValues,
): ServerValues {
  const names = connection.kind === 'http' ? connection.headers : connection.env
  const all = { ...stored.named, ...named }
  const missing = names.find((name) => !Object.hasOwn(all, name))
  if (missing !== undefined) throw new SandlotError('bad_request', `Enter a value for ${missing}.`)
  const values = { named: Object.fromEntries(names.map((name) => [name, all[name] ?? ''])) }
  const auth = connection.kind === 'http' ? connection.auth : undefined
  if (auth === undefined || auth.type === 'none' || auth.clientId === undefined) return values
  const secret = clientSecret ?? stored.clientSecret
  if (secret === undefined && auth.type === 'client-credentials')
    throw new SandlotError('bad_request', 'Enter the secret of the client.')
  return { ...values, clientSecret: secret }
}

/** Throws `bad_request` for a reference that cannot be resolved where the value goes. */
function checkValues({ connection }: AddedServer, { named }: ServerValues): void {
  for (const [name, value] of Object.entries(named)) {
    const template = valueTemplate(value)
    if (typeof template === 'string') throw new SandlotError('bad_request', `${name}: ${template}`)
    if (connection.kind === 'sandbox' && needsUser(template))
      throw new SandlotError(
        'bad_request',
        `${name}: a person’s secret cannot go into a sandbox, where every command can read it.`,
      )
  }
}

/** A value of before there were references stands as it is. */
function templatesOf({ named }: ServerValues): Record<string, Template> {
  const read = Object.entries(named).map(([name, value]) => {
    const template = valueTemplate(value)
    return [name, typeof template === 'string' ? [value] : template] as const
  })
  return Object.fromEntries(read)
}

/** The target of its values and secrets. */
function targetOf({ connection }: AddedServer): string {
  if (connection.kind !== 'http') return connection.kind
  const { url, auth } = connection
  return JSON.stringify([url, auth.type === 'none' ? undefined : auth.issuer])
}

/** Its form as an entry of the configuration. */
function configOf({ connection }: AddedServer, clientSecret: string | undefined): object {
  if (connection.kind === 'sandbox') {
    const { command, args } = connection
    return { command, args, where: 'sandbox' }
  }
  const { url, auth } = connection
  return auth.type === 'none' ? { url } : { url, auth: { ...auth, clientSecret } }
}

/** 96 bits. */
const DIGEST_CHARS = 16

function digest(connection: AddedServer['connection']): string {
  const about =
    connection.kind === 'http' ? [connection.url] : [connection.command, connection.args, connection.env]
  return createHash('sha256').update(JSON.stringify(about)).digest('base64url').slice(0, DIGEST_CHARS)
}
