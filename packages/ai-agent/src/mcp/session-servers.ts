/**
 * Servers that a client (an editor) names for one session. They work for the session's user in that
 * session only, are started by its next prompt, and end with the session or the agent.
 */
import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { type McpServerConfig, mcpServersSection } from './config.ts'
import { signInLink } from './error.ts'
import type { ServerStatus } from './servers.ts'
import type { McpServer } from './server.ts'
import { type ServerSpec, clientServerSpec } from './server-spec.ts'

/** One server as a client describes it. `${…}` in its texts is not resolved. */
export type ClientServer =
  | {
      name: string
      command: string
      args: readonly string[]
      env: Readonly<Record<string, string>>
      /** Environment of every program there; `env` takes precedence. */
      baseEnv?: Readonly<Record<string, string>>
      /** Absolute; in a sandbox also relative to the workspace. */
      cwd?: string
      /**
       * `deployment` runs it as the agent's own user: only for a client that could run it itself.
       */
      where: 'sandbox' | 'deployment'
    }
  | { name: string; url: string; headers: Readonly<Record<string, string>> }

/** The first half of its tools' ids, or why it cannot be used. */
export type ClientServerResult = { name: string; as: string } | { name: string; problem: string }

/** The status of one, for users. */
export interface ClientServerStatus extends ServerStatus {
  /** The URL of its user's sign-in; valid for a while. */
  link?: string
}

interface SessionServersParts {
  /**
   * Names of the deployment's servers and of the user's own: a client's server must not get their
   * ids, and with these their rules.
   */
  reserved: (userId: string) => readonly string[]
  makeServer: (spec: ServerSpec, userId: string) => McpServer
}

/** In one session. */
const MAX_SERVERS = 32
/** Sessions whose servers are kept; the client of an evicted one has to name them again. */
const MAX_SESSIONS = 1_000
const NAME_CHARS = 40
/** 96 bits. */
const DIGEST_CHARS = 16

interface Held {
  userId: string
  /** The servers as JSON: the same list changes nothing. */
  as: string
  results: ClientServerResult[]
  servers: readonly McpServer[]
}

export class SessionServers {
  readonly #parts: SessionServersParts
  readonly #held = new LRUCache<string, Held>({
    max: MAX_SESSIONS,
    dispose: ({ servers }, _, reason) => {
      if (reason === 'evict') for (const server of servers) void server.close()
    },
  })
  /** Replaced ones, while their calls may still run. */
  readonly #leaving = new Set<McpServer>()

  constructor(parts: SessionServersParts) {
    this.#parts = parts
  }

  /**
   * Replaces the session's servers from the next prompt on; the previous ones end when `unused`
   * resolves (it must not reject). Starts nothing, and the same list again (an editor that
   * reconnects) ends nothing. Never throws: a problem is part of the result.
   */
  set(
    userId: string,
    sessionId: string,
    servers: readonly ClientServer[],
    unused: () => Promise<void> = () => Promise.resolve(),
  ): ClientServerResult[] {
    const as = JSON.stringify(servers)
    const before = this.#held.get(sessionId)
    if (before?.as === as && before.userId === userId) return before.results
    this.#held.delete(sessionId)
    void this.#retire(before?.servers ?? [], unused)
    if (servers.length === 0) return []
    const taken = new Set(this.#parts.reserved(userId).map(folded))
    const read = servers.map((server, index) => this.#read(server, index, sessionId, taken))
    const made = read.flatMap((one) => ('spec' in one ? [this.#parts.makeServer(one.spec, userId)] : []))
    const results = read.map((one) => ('spec' in one ? { name: one.name, as: one.spec.name } : one))
    this.#held.set(sessionId, { userId, as, results, servers: made })
    return results
  }

  /** The servers of this user's session; none for any other user. */
  of(userId: string, sessionId: string): readonly McpServer[] {
    const held = this.#held.get(sessionId)
    if (held === undefined || held.userId !== userId) return []
    return held.servers
  }

  /** The status of each when the session's last prompt began; empty before the first. */
  status(userId: string, sessionId: string): ClientServerStatus[] {
    return this.of(userId, sessionId).flatMap(({ name, last, problems }) => {
      if (last === undefined) return []
      const link = last.state === 'needs_auth' ? signInLink(last.signIn) : undefined
      const why = last.state === 'unavailable' ? { why: last.why } : {}
      return [{ name, state: last.state, ...why, link, problems }]
    })
  }

  /** Ends the session's servers. Never rejects. */
  async close(sessionId: string): Promise<void> {
    const held = this.#held.get(sessionId)
    this.#held.delete(sessionId)
    await Promise.all((held?.servers ?? []).map((server) => server.close()))
  }

  /** Ends all of them. Never rejects. */
  async closeAll(): Promise<void> {
    const leaving = [...this.#leaving].map((server) => server.close())
    await Promise.all([...leaving, ...[...this.#held.keys()].map((sessionId) => this.close(sessionId))])
  }

  /** Never rejects. */
  async #retire(servers: readonly McpServer[], unused: () => Promise<void>): Promise<void> {
    for (const server of servers) this.#leaving.add(server)
    await unused()
    await Promise.all(servers.map((server) => server.close()))
    for (const server of servers) this.#leaving.delete(server)
  }

  #read(
    server: ClientServer,
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
    return { name, spec: clientServerSpec(as, config, { place, ruleId: `${as}@${digest(server)}` }) }
  }

  /**
   * Starting a server kills a leftover process with the same key, but must not kill one that still
   * works.
   */
  #freePlace(wanted: string): string {
    const used = new Set([...this.#leaving].map(({ spec }) => spec.place))
    let place = wanted
    for (let number = 2; used.has(place); number++) place = `${wanted}~${number}`
    return place
  }
}

/**
 * The key of remembered approvals: another program or address under the same name is asked about
 * again. For a program everything that its client says, for an address the address.
 */
function digest(server: ClientServer): string {
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

/** The same server as a configuration entry. */
function configured(server: ClientServer): object {
  if ('url' in server) return { url: server.url, headers: server.headers, ...signInOf(server.headers) }
  const { command, args, env, baseEnv, cwd, where } = server
  return { command, args, env: { ...baseEnv, ...env }, cwd, where }
}

/** A server with a token needs no sign-in; any other may ask for one. */
function signInOf(headers: Readonly<Record<string, string>>): object {
  const hasKey = Object.keys(headers).some((name) => name.toLowerCase() === 'authorization')
  return hasKey ? {} : { auth: { type: 'oauth' } }
}

/** A legal name that is not taken. */
function freeName(name: string, taken: ReadonlySet<string>): string {
  const legal = name.replaceAll(/[^A-Za-z0-9_-]+/g, '-').replace(/^[-_]+/, '')
  const wanted = (legal === '' ? 'server' : legal).slice(0, NAME_CHARS - 4)
  for (let number = 1; ; number++) {
    const tried = number === 1 ? wanted : `${wanted}-${number}`
    if (!taken.has(folded(tried))) return tried
  }
}

/** A model could not distinguish two names that are equal here. */
export function folded(name: string): string {
  return name.toLowerCase().replaceAll('-', '_')
}
