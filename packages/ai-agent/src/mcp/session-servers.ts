/**
 * Servers that a client (an editor) brings for one session, beside those of the deployment. They work for the session's
 * user in that session only, are started by its next prompt, and are gone when the session is left or the agent ends.
 */
import { createHash } from 'node:crypto'
import { type McpServerConfig, mcpServersSection } from './config.ts'
import { linkTo } from './error.ts'
import type { ServerStanding } from './servers.ts'
import type { McpServer } from './server.ts'
import { type ServerSpec, broughtSpec } from './server-spec.ts'

/** One server as a client describes it. Its texts are taken as they are: `${…}` in them stands for nothing of ours. */
export type BroughtServer =
  | {
      name: string
      command: string
      args: readonly string[]
      env: Readonly<Record<string, string>>
      /** What every program there gets of its environment; `env` goes before. */
      around?: Readonly<Record<string, string>>
      /** Absolute; in a sandbox also relative to the workspace. */
      cwd?: string
      /** `deployment` runs it as the agent's own user: only for a client that could do that itself. */
      where: 'sandbox' | 'deployment'
    }
  | { name: string; url: string; headers: Readonly<Record<string, string>> }

/** What became of one: the first half of its tools' ids here, or why it cannot be used. */
export type Brought = { name: string; as: string } | { name: string; problem: string }

/** How one is, for people. */
export interface BroughtStanding extends ServerStanding {
  /** Where its user signs in, for a while. */
  link?: string
}

export interface SessionServersParts {
  /** Names of the deployment's servers: nobody else's tools may have their ids, and with these their rules. */
  reserved: readonly string[]
  makeServer: (spec: ServerSpec, userId: string) => McpServer
}

/** Of one session. */
const MAX_SERVERS = 32
/** Sessions whose servers are remembered; the one that was left longest ago has to bring them again. */
const MAX_SESSIONS = 1_000
const NAME_CHARS = 40
/** 96 bits. */
const DIGEST_CHARS = 16

interface Held {
  userId: string
  /** What was brought: the same again changes nothing. */
  as: string
  brought: Brought[]
  servers: readonly McpServer[]
}

export class SessionServers {
  readonly #parts: SessionServersParts
  /** In the order of their last use. */
  readonly #held = new Map<string, Held>()
  /** Whose place others have taken, while calls of theirs may still run. */
  readonly #leaving = new Set<McpServer>()

  constructor(parts: SessionServersParts) {
    this.#parts = parts
  }

  /**
   * From the next prompt on the session has these, in place of those it had, which end when `unused` resolves (it never
   * rejects). Nothing is started; bringing the same again (an editor that reconnects) ends nothing either. Never throws: what
   * is wrong with one is its `problem`.
   */
  bring(
    userId: string,
    sessionId: string,
    servers: readonly BroughtServer[],
    unused: () => Promise<void> = () => Promise.resolve(),
  ): Brought[] {
    const as = JSON.stringify(servers)
    const before = this.#held.get(sessionId)
    if (before?.as === as && before.userId === userId) return before.brought
    this.#held.delete(sessionId)
    void this.#retire(before?.servers ?? [], unused)
    if (servers.length === 0) return []
    const taken = new Set(this.#parts.reserved.map(folded))
    const read = servers.map((server, index) => this.#read(server, index, sessionId, taken))
    const made = read.flatMap((one) => ('spec' in one ? [this.#parts.makeServer(one.spec, userId)] : []))
    const brought = read.map((one) => ('spec' in one ? { name: one.name, as: one.spec.name } : one))
    this.#held.set(sessionId, { userId, as, brought, servers: made })
    const [oldest] = this.#held.keys()
    if (this.#held.size > MAX_SESSIONS && oldest !== undefined) void this.leave(oldest)
    return brought
  }

  /** Those of this user's session; none for anybody else. */
  of(userId: string, sessionId: string): readonly McpServer[] {
    const held = this.#held.get(sessionId)
    if (held === undefined || held.userId !== userId) return []
    this.#held.delete(sessionId)
    this.#held.set(sessionId, held)
    return held.servers
  }

  /** How each was when the session's last prompt began; nothing before the first. */
  standing(userId: string, sessionId: string): BroughtStanding[] {
    return this.of(userId, sessionId).flatMap(({ name, last, problems }) => {
      if (last === undefined) return []
      const link = last.state === 'needs_auth' ? linkTo(last.connecting) : undefined
      const why = last.state === 'unavailable' ? { why: last.why } : {}
      return [{ name, state: last.state, ...why, link, problems }]
    })
  }

  /** End what the session brought. Never rejects. */
  async leave(sessionId: string): Promise<void> {
    const held = this.#held.get(sessionId)
    this.#held.delete(sessionId)
    await Promise.all((held?.servers ?? []).map((server) => server.close()))
  }

  /** End all of them. Never rejects. */
  async close(): Promise<void> {
    const leaving = [...this.#leaving].map((server) => server.close())
    await Promise.all([...leaving, ...[...this.#held.keys()].map((sessionId) => this.leave(sessionId))])
  }

  /** Never rejects. */
  async #retire(servers: readonly McpServer[], unused: () => Promise<void>): Promise<void> {
    for (const server of servers) this.#leaving.add(server)
    await unused()
    await Promise.all(servers.map((server) => server.close()))
    for (const server of servers) this.#leaving.delete(server)
  }

  #read(
    server: BroughtServer,
    index: number,
    sessionId: string,
    taken: Set<string>,
  ): { name: string; spec: ServerSpec } | { name: string; problem: string } {
    const { name } = server
    if (index >= MAX_SERVERS) return { name, problem: `a session has at most ${MAX_SERVERS} servers` }
    const as = freeName(name, taken)
    const read = mcpServersSection.safeParse({ [as]: configured(server) })
    const config: McpServerConfig | undefined = read.data?.[as]
    if (config === undefined)
      return { name, problem: read.error?.issues.map(({ message }) => message).join('; ') ?? '' }
    taken.add(folded(as))
    const place = this.#freePlace(`sessions/${sessionId}/${as}`)
    return { name, spec: broughtSpec(as, config, { place, ruledAs: `${as}@${digest(server)}` }) }
  }

  /** Starting a server ends what is left of one at its place: not what still works there. */
  #freePlace(wanted: string): string {
    const used = new Set([...this.#leaving].map(({ spec }) => spec.place))
    let place = wanted
    for (let number = 2; used.has(place); number++) place = `${wanted}~${number}`
    return place
  }
}

/**
 * What answers about its tools are remembered for: another program or address under the same name is asked about anew. Of a
 * program all that its client says, of an address the address.
 */
function digest(server: BroughtServer): string {
  const about =
    'url' in server
      ? [server.url]
      : [
          server.command,
          server.args,
          Object.entries(server.env).toSorted(([a], [b]) => (a < b ? -1 : 1)),
          server.cwd,
          server.where,
        ]
  return createHash('sha256').update(JSON.stringify(about)).digest('base64url').slice(0, DIGEST_CHARS)
}

/** As the configuration would describe it. */
function configured(server: BroughtServer): object {
  if ('url' in server) return { url: server.url, headers: server.headers, ...signInOf(server.headers) }
  const { command, args, env, around, cwd, where } = server
  return { command, args, env: { ...around, ...env }, cwd, where }
}

/** Who brings a key needs no sign-in; of all others a server that wants one may ask for it. */
function signInOf(headers: Readonly<Record<string, string>>): object {
  const hasKey = Object.keys(headers).some((name) => name.toLowerCase() === 'authorization')
  return hasKey ? {} : { auth: { type: 'oauth' } }
}

/** A legal name, and nobody else's. */
function freeName(name: string, taken: ReadonlySet<string>): string {
  const legal = name.replaceAll(/[^A-Za-z0-9_-]+/g, '-').replace(/^[-_]+/, '')
  const wanted = (legal === '' ? 'server' : legal).slice(0, NAME_CHARS - 4)
  for (let number = 1; ; number++) {
    const tried = number === 1 ? wanted : `${wanted}-${number}`
    if (!taken.has(folded(tried))) return tried
  }
}

/** Two with the same could not be told apart by a model. */
function folded(name: string): string {
  return name.toLowerCase().replaceAll('-', '_')
}
