import type { EgressReason, RefusedHost } from '../sandbox.ts'
import { createBudget } from './budget.ts'
import type { Authority } from './host.ts'
import { createOpenConnections } from './open-connections.ts'
import { createPolicy, type EgressPolicy, type EgressPolicyOptions } from './policy.ts'
import { isAboutHost } from './refusal.ts'
import { type ConnectionRecord, serveConnection } from './serve.ts'
import { createUserPolicy, type UserRulesOptions } from './user-rules.ts'
import type { Duplex } from 'node:stream'

/** One connection of a user's sandbox, at its end. */
interface EgressAudit extends ConnectionRecord {
  /** Start, in epoch milliseconds. */
  at: number
  userId: string
  /** The command that opened it, if known. */
  commandId?: string
  /** Connections that this record stands for; absent: one. Only for those refused by a budget. */
  count?: number
}

/** Raised when a connection is refused, so that a person can be asked to allow it. */
interface EgressRefusedEvent {
  type: 'egress_refused'
  at: number
  userId: string
  /** Absent: unknown which of the sandbox's commands it was. */
  commandId?: string
  /** Absent when the request could not be read. */
  host?: string
  port?: number
  reason: EgressReason
  /** Connections that this event stands for; absent: one. */
  count?: number
}

export interface EgressOptions extends EgressPolicyOptions, UserRulesOptions {
  /** Interval at which open connections are checked against the rules. Default 1,000 ms. */
  recheckMs?: number
  /**
   * Called at the end of every connection; must not throw. For those refused by a budget at most
   * once a second, with their number.
   */
  audit?: (record: EgressAudit) => void
  /**
   * Called at every refusal, at once; must not throw. For those refused by a budget as `audit` is.
   */
  onRefused?: (event: EgressRefusedEvent) => void
}

/** Egress of one user's sandbox, over whatever stream is open to it. */
export interface UserEgress {
  /**
   * Connections that the listener inside may keep open: slightly more than the budget, which gives
   * a better answer.
   */
  readonly connections: number
  /**
   * Environment variables that point a command to the proxy at this port of the loopback interface.
   */
  environment(commandId: string, port: number): Record<string, string>
  /** A connection from inside. Never rejects. */
  serve(stream: Duplex): Promise<void>
  /** Connections that sbxd refused because it had no room. */
  refusedInside(count: number): void
  /** This command has started: connections may be its own. */
  began(commandId: string): void
  /** It has ended. Returns the hosts refused to it, each once. */
  ended(commandId: string): RefusedHost[]
}

export interface Egress {
  /**
   * The same object for the same user, so that budgets outlive a stream. Undefined: this user has
   * no egress.
   */
  forUser(userId: string): UserEgress | undefined
}

/** Maximum hosts reported with one command, and commands remembered. */
const MOST_HOSTS = 32
const MOST_COMMANDS = 1_024
const MORE_THAN_BUDGET = 32
const REPEAT_MS = 1_000
const RECHECK_MS = 1_000
const NOT_THROUGH_PROXY = 'localhost,127.0.0.1,::1'

/** Throws `invalid_arguments` for invalid options. */
export function createEgress(options: EgressOptions): Egress {
  const policy = createPolicy(options)
  const users = new Map<string, UserEgress>()
  return {
    forUser(userId) {
      if (options.isOpenTo?.(userId) === false) return undefined
      const known = users.get(userId)
      if (known) return known
      const made = createUserEgress(userId, policy, options)
      users.set(userId, made)
      return made
    },
  }
}

function createUserEgress(userId: string, policy: EgressPolicy, options: EgressOptions): UserEgress {
  const rules = createUserPolicy(userId, policy, options)
  const open = createOpenConnections(rules, options.recheckMs ?? RECHECK_MS)
  const budget = createBudget(policy.budgets)
  const commands = createCommands()
  const overBudget = countRepeats((reason, count) => {
    const about = { at: Date.now(), userId, reason, ...(count === 1 ? {} : { count }) }
    options.onRefused?.({ type: 'egress_refused', ...about })
    options.audit?.({ ...about, decision: 'refused', bytesUp: 0, bytesDown: 0, ms: 0 })
  })
  return {
    connections: policy.budgets.connections + MORE_THAN_BUDGET,
    environment: proxyEnvironment,
    began: (commandId) => commands.began(commandId),
    ended: (commandId) => commands.ended(commandId),
    refusedInside: (count) => overBudget('too_many_connections', count),
    async serve(stream) {
      const at = Date.now()
      let commandId = commands.owner(undefined)
      const record = await serveConnection(stream, {
        policy,
        budget,
        decide: async (authority) => (await rules.decide())(authority),
        onOpen: (authority, end) => open.add(authority, end),
        onRequest(proxyUser) {
          commandId = commands.owner(proxyUser)
        },
        onOverBudget: (reason) => overBudget(reason, 1),
        onRefused(reason, authority) {
          if (authority && commandId !== undefined) commands.refused(commandId, authority, reason)
          options.onRefused?.({
            type: 'egress_refused',
            at: Date.now(),
            userId,
            commandId,
            ...authority,
            reason,
          })
        },
      })
      if (record) options.audit?.({ at, userId, commandId, ...record })
    },
  }
}

/** Reports the first of a kind at once and repeats as a count: a program causes them for free. */
function countRepeats(report: (reason: EgressReason, count: number) => void) {
  const waiting = new Map<EgressReason, number>()
  const say = (reason: EgressReason, count: number): void => {
    waiting.set(reason, 0)
    setTimeout(() => {
      const more = waiting.get(reason) ?? 0
      waiting.delete(reason)
      if (more > 0) say(reason, more)
    }, REPEAT_MS).unref()
    report(reason, count)
  }
  return (reason: EgressReason, count: number): void => {
    const before = waiting.get(reason)
    if (before === undefined) say(reason, count)
    else waiting.set(reason, before + count)
  }
}

/** Running commands, and the hosts refused to each. */
function createCommands() {
  const running = new Map<string, Map<string, RefusedHost>>()
  return {
    began(commandId: string): void {
      if (!running.has(commandId) && running.size < MOST_COMMANDS) running.set(commandId, new Map())
    },
    ended(commandId: string): RefusedHost[] {
      const hosts = [...(running.get(commandId)?.values() ?? [])]
      running.delete(commandId)
      return hosts
    },
    /**
     * The command's id is the user name in its proxy's address. A connection without one belongs to
     * the only running command. It is a hint among one user's commands; no decision depends on it.
     */
    owner(proxyUser: string | undefined): string | undefined {
      if (proxyUser !== undefined) return running.has(proxyUser) ? proxyUser : undefined
      const [only, ...others] = running.keys()
      return others.length === 0 ? only : undefined
    },
    refused(commandId: string, { host, port }: Authority, reason: EgressReason): void {
      const hosts = running.get(commandId)
      if (hosts && hosts.size < MOST_HOSTS && isAboutHost(reason))
        hosts.set(`${host}:${port} ${reason}`, { host, port, reason })
    },
  }
}

/**
 * In both spellings, because programs differ. The password is present only because some ask for a
 * missing one.
 */
function proxyEnvironment(commandId: string, port: number): Record<string, string> {
  const proxy = `http://${commandId}:sandbox@127.0.0.1:${port}`
  return {
    HTTP_PROXY: proxy,
    http_proxy: proxy,
    HTTPS_PROXY: proxy,
    https_proxy: proxy,
    NO_PROXY: NOT_THROUGH_PROXY,
    no_proxy: NOT_THROUGH_PROXY,
    // git would otherwise send the user name only after a challenge.
    GIT_HTTP_PROXY_AUTHMETHOD: 'basic',
    // Node's own fetch reads the variables only with this one.
    NODE_USE_ENV_PROXY: '1',
  }
}
