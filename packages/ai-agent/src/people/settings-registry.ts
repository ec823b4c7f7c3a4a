/**
 * Administrators' settings for teams and people, in memory: looked up for every prompt and call. A
 * change is stored first and holds from the next prompt on.
 */
import type { TeamSeeds } from '@sandlot/shared/acp/meta'
import { SerialQueue } from '@sandlot/shared/async/serial-queue'
import { SandlotError, messageOf } from '@sandlot/shared/base/errors'
import type { Mode } from '@sandlot/shared/chat/mode'
import type { NewAudit } from '@sandlot/shared/admin/audit'
import {
  ALL_TOOLS,
  type AgentLimits,
  editedLegacyLimits,
  type AgentSettings,
  type DeploymentSettings,
  type EffectiveSettings,
  type SettingSource,
  type SettingsSubject,
  type SettingsView,
  type TeamLimits,
  type TeamSettings,
  effectiveSettings,
  toolsByName,
  type OwnServers,
} from '@sandlot/shared/account/agent-settings'
import type { AgentSettingsRows, SettingsRecord } from '@sandlot/storage/people/agent-settings'
import type { KnownPerson } from '@sandlot/storage/people/people'
import type { Log } from '../log.ts'

/** Settings of one person’s tools, from every source. */
interface OwnTools {
  /**
   * False: they have none but those of `single`; true: those that everybody would have. Undefined:
   * as everybody.
   */
  all?: boolean
  /** By tool id; wins over `all`. */
  single: ReadonlyMap<string, boolean>
}

/** Settings of one person; absent: as for everybody. The same object until something changes. */
interface OwnSettings {
  tools?: OwnTools | undefined
  modeCeiling?: Mode | undefined
  network?: { mode?: 'none' | 'egress'; hosts?: string[]; ask?: boolean } | undefined
  /** Names of those servers of the configuration that are not for them. */
  withheldServers?: ReadonlySet<string> | undefined
  /** Servers that they may add. */
  ownServers?: OwnServers | undefined
  /** Names, in the order of the configuration. */
  models?: readonly string[] | undefined
  limits: Required<AgentLimits>
  /** Instructions of their teams and of themselves, each under a heading. */
  instructions: readonly { heading: string; text: string }[]
}

/** Settings of single people, by user id. */
export interface PersonalSettings {
  of(userId: string): OwnSettings
}

interface SettingsRegistryParts {
  rows: AgentSettingsRows
  people: { get(userId: string): KnownPerson | undefined; readonly all: ReadonlyMap<string, KnownPerson> }
  deployment: DeploymentSettings
  /** Ids of those there are, without those of MCP servers. */
  tools: readonly string[]
  /** The problem of settings, as a sentence; undefined: none. */
  problem: (settings: AgentSettings) => string | undefined
  /** Epoch milliseconds. */
  now: () => number
  log: Log
}

/** Rows to begin with, and which sections of the configuration file they come from. */
export interface SettingsSeeds {
  rows: readonly Omit<SettingsRecord, 'revision'>[]
  sections: readonly string[]
}

interface Computed {
  person: KnownPerson | undefined
  version: number
  own: OwnSettings
}

const NOT_READ = 'are not read any more: what they set is changed in Settings → People'

export class SettingsRegistry implements PersonalSettings {
  readonly #parts: SettingsRegistryParts
  readonly #rows: Map<string, SettingsRecord>
  readonly #computed = new Map<string, Computed>()
  readonly #writes = new SerialQueue()
  /** Grows with every change. */
  #version = 0

  /** `seeds` are stored once; from then on they are not used. */
  static async open(parts: SettingsRegistryParts, seeds: SettingsSeeds): Promise<SettingsRegistry> {
    const { rows, log, now, people } = parts
    const sections = seeds.sections.join(', ')
    if (seeds.rows.length > 0) {
      const taken = await rows.seed(seeds.rows, now())
      if (taken)
        log.info(
          { settings: seeds.rows.length },
          `${sections} of the configuration file were taken over, and ${NOT_READ}. Remove them from the file.`,
        )
      else log.warn({}, `${sections} of the configuration file ${NOT_READ}. Remove them from the file.`)
    }
    const registry = new SettingsRegistry(parts, await rows.all())
    for (const userId of people.all.keys()) registry.claim(userId)
    await registry.settled()
    return registry
  }

  constructor(parts: SettingsRegistryParts, rows: readonly SettingsRecord[]) {
    this.#parts = parts
    this.#rows = new Map(rows.map((row) => [keyOf(row.subject), row]))
  }

  of(userId: string): OwnSettings {
    const person = this.#parts.people.get(userId)
    const known = this.#computed.get(userId)
    if (known !== undefined && known.version === this.#version && known.person === person) return known.own
    const own = ownOf(this.effective({ id: userId, ...person }), this.#parts.deployment)
    this.#computed.set(userId, { person, version: this.#version, own })
    return own
  }

  /** Everything that holds for this person, with where it comes from. */
  effective({
    id,
    email,
    teams = [],
  }: { id: string } & Partial<Omit<KnownPerson, 'role'>>): EffectiveSettings {
    const keys = [id, email?.toLowerCase()].filter((key) => key !== undefined)
    const seeded = this.teamSeeds().filter(({ members }) => keys.some((key) => members.includes(key)))
    const ids = new Set([...teams, ...seeded.map((team) => team.id)])
    const found = [...ids].flatMap((teamId): TeamSettings[] => {
      const row = this.#row({ kind: 'team', id: teamId })
      return row === undefined ? [] : [{ id: teamId, name: row.name ?? teamId, settings: row.settings }]
    })
    const own = keys.flatMap((key) => this.#row({ kind: 'person', id: key })?.settings ?? [])
    // A setting under the id wins over one under the address.
    return effectiveSettings(this.#parts.deployment, found, own.reduceRight(merged, {}))
  }

  /** Limits of this user's teams, where there are any. */
  togetherOf(userId: string): { of: { kind: 'team'; id: string; name: string }; limits: TeamLimits }[] {
    const { teams = [] } = this.#parts.people.get(userId) ?? {}
    return teams.flatMap((id) => {
      const { name = id, settings } = this.#row({ kind: 'team', id }) ?? {}
      return settings?.together === undefined
        ? []
        : [{ of: { kind: 'team', id, name }, limits: settings.together }]
    })
  }

  get tools(): readonly string[] {
    return this.#parts.tools
  }

  get all(): readonly SettingsRecord[] {
    return [...this.#rows.values()]
  }

  view(subject: SettingsSubject): SettingsView {
    const { settings = {}, revision = 0 } = this.#row(subject) ?? {}
    return { settings, revision }
  }

  /**
   * In place of what is set. Undefined where `revision` is not the one that is there. Throws
   * `bad_request` that names what cannot be.
   */
  put(
    subject: SettingsSubject,
    { settings, revision }: SettingsView,
    name: string | undefined,
    audit?: (before: AgentSettings) => NewAudit,
  ): Promise<SettingsView | undefined> {
    const problem =
      subject.kind === 'person' && settings.together !== undefined
        ? 'What several people may use up together is set for a team; one person has limits of their own.'
        : this.#parts.problem(settings)
    if (problem !== undefined) throw new SandlotError('bad_request', problem)
    return this.#writes.run(async () => {
      const before = this.#row(subject)
      if ((before?.revision ?? 0) !== revision) return undefined
      const [legacy] = editedLegacyLimits(before?.settings ?? {}, settings)
      if (legacy !== undefined)
        throw new SandlotError(
          'bad_request',
          `The limit ${legacy} is no longer editable. Limit turns, cost or seconds of a message, or tokens or cost of a day or a month.`,
        )
      const row = { ...before, subject, name: name ?? before?.name, settings, revision: revision + 1 }
      const line = audit?.(before?.settings ?? {})
      if (!(await this.#parts.rows.put(row, this.#parts.now(), line))) {
        // Another process was faster: what it has set is what is shown next.
        await this.#read()
        return undefined
      }
      this.#keep(row)
      return this.view(subject)
    })
  }

  /** Reads again what another process may have changed. Rejects when the store fails. */
  reload(): Promise<void> {
    return this.#writes.run(() => this.#read())
  }

  /** The available choices have changed. */
  renew(): void {
    this.#version++
  }

  /** Silent where there are none. */
  remove(subject: SettingsSubject, audit?: NewAudit): Promise<void> {
    return this.#writes.run(async () => {
      await this.#parts.rows.remove(subject, audit)
      this.#rows.delete(keyOf(subject))
      this.#version++
    })
  }

  /** The name under which a team’s settings are shown. */
  rename(subject: SettingsSubject, name: string): Promise<void> {
    return this.#change(subject, (row) => ({ ...row, name }))
  }

  /** Teams of the configuration file whose members the accounts do not know yet. */
  teamSeeds(): TeamSeeds['teams'] {
    return this.all.flatMap(({ subject, name = subject.id, members }) =>
      members === undefined ? [] : [{ id: subject.id, name, members: [...members] }],
    )
  }

  /** From now on the accounts say who is in these teams. */
  async adopted(teamIds: readonly string[]): Promise<void> {
    for (const id of teamIds)
      await this.#change({ kind: 'team', id }, (row) => ({ ...row, members: undefined }))
  }

  /**
   * A person’s address is known now: what was set under it is theirs, whatever address they have
   * later. Effective at once; stored behind it.
   */
  claim(userId: string): void {
    const email = this.#parts.people.get(userId)?.email
    if (email === undefined || email === userId) return
    const address: SettingsSubject = { kind: 'person', id: email }
    const said = this.#row(address)
    if (said === undefined) return
    const subject: SettingsSubject = { kind: 'person', id: userId }
    const own = this.#row(subject)
    const row = {
      subject,
      settings: own === undefined ? said.settings : merged(said.settings, own.settings),
      revision: (own?.revision ?? 0) + 1,
    }
    this.#rows.delete(keyOf(address))
    this.#keep(row)
    const { rows, now, log } = this.#parts
    void this.#writes
      .run(() => rows.replace(address, row, now()))
      .catch((error: unknown) =>
        log.warn({ userId, error: messageOf(error) }, 'settings of an address were not moved to its user'),
      )
  }

  /** Forgets a person who was removed; their row is removed with the rest of them. */
  forget(userId: string): void {
    this.#rows.delete(keyOf({ kind: 'person', id: userId }))
    this.#computed.delete(userId)
  }

  /** Resolves when everything before is stored, or has failed to be. Never rejects. */
  settled(): Promise<void> {
    return this.#writes.idle()
  }

  /** Stores the change of the latest row, also where another process has just changed it. */
  #change(subject: SettingsSubject, changed: (row: SettingsRecord) => SettingsRecord): Promise<void> {
    return this.#writes.run(async () => {
      for (let before = this.#row(subject); before !== undefined; before = this.#row(subject)) {
        const row = changed({ ...before, revision: before.revision + 1 })
        if (await this.#parts.rows.put(row, this.#parts.now())) return this.#keep(row)
        await this.#read()
      }
    })
  }

  #row(subject: SettingsSubject): SettingsRecord | undefined {
    return this.#rows.get(keyOf(subject))
  }

  async #read(): Promise<void> {
    const rows = await this.#parts.rows.all()
    this.#rows.clear()
    for (const row of rows) this.#rows.set(keyOf(row.subject), row)
    this.#version++
  }

  #keep(row: SettingsRecord): void {
    this.#rows.set(keyOf(row.subject), row)
    this.#version++
  }
}

function keyOf({ kind, id }: SettingsSubject): string {
  return `${kind}:${id}`
}

/** Settings under the address, changed by those under the id. */
function merged(address: AgentSettings, id: AgentSettings): AgentSettings {
  const network = { ...address.network, ...id.network }
  return {
    ...address,
    ...id,
    tools: id.tools === undefined ? address.tools : withTools(address.tools, id.tools),
    ...(address.limits || id.limits ? { limits: { ...address.limits, ...id.limits } } : {}),
    // Hosts say nothing where there is no network.
    ...(address.network || id.network
      ? { network: network.mode === 'none' ? { mode: network.mode } : network }
      : {}),
  }
}

/**
 * A word about all tools leaves standing what was taken away singly: only a word about that tool
 * gives it back.
 */
function withTools(before: AgentSettings['tools'], said: NonNullable<AgentSettings['tools']>) {
  const known = toolsByName(before)
  const now = toolsByName(said)
  const unchanged =
    now[ALL_TOOLS] === false ? Object.entries(known).filter(([, given]) => !given) : Object.entries(known)
  return { ...Object.fromEntries(unchanged), ...now }
}

function ownOf(effective: EffectiveSettings, deployment: DeploymentSettings): OwnSettings {
  const { tools, modeCeiling, network, mcpServers, ownServers, models, limits } = effective
  const single = new Map(Object.entries(tools.single).map(([id, { value }]) => [id, value]))
  const all = setOf(tools.all)
  const reach = { mode: setOf(network.mode), hosts: setOf(network.hosts), ask: setOf(network.ask) }
  const servers = setOf(mcpServers)
  return {
    tools: all === undefined && single.size === 0 ? undefined : { all, single },
    modeCeiling: setOf(modeCeiling),
    network: Object.values(reach).every((value) => value === undefined) ? undefined : reach,
    withheldServers: servers && new Set(deployment.mcpServers.filter((name) => !servers.includes(name))),
    ownServers: setOf(ownServers),
    models: setOf(models),
    limits: Object.fromEntries(
      Object.entries(limits).map(([name, { value }]) => [name, value]),
    ) as Required<AgentLimits>,
    instructions: effective.instructions.map(({ value, from }) => ({
      heading: headingOf(from),
      text: value,
    })),
  }
}

function setOf<V>({ value, from }: { value: V; from: SettingSource }): V | undefined {
  return from.kind === 'deployment' ? undefined : value
}

function headingOf(from: SettingSource): string {
  return from.kind === 'teams'
    ? `From the team ${from.teams.map(({ name }) => name).join(', ')}`
    : 'From the administrator, for this user'
}
