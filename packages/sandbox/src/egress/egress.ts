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
  /** Epoch milliseconds of its beginning. */
  at: number
  userId: string
  /** The command that made it, where that is known. */
  commandId?: string
  /**
   * How many connections this record stands for; absent: one. Only of those that a budget kept out.
   */
  count?: number
}

/** Raised when a connection is refused, so that a person can be asked to allow it. */
interface EgressRefusedEvent {
  type: 'egress_refused'
  at: number
  userId: string
  /** Absent: it cannot be said which of the sandbox's commands it was. */
  commandId?: string
  /** Absent when the request could not be read. */
  host?: string
  port?: number
  reason: EgressReason
  /** How many connections this stands for; absent: one. */
  count?: number
}

export interface EgressOptions extends EgressPolicyOptions, UserRulesOptions {
  /**
   * How often it is looked whether open connections would still be let through. Default 1,000 ms.
   */
  lookAgainMs?: number
  /**
   * Told of every connection at its end; must not throw. Of those that a budget kept out at most
   * once a second, with their number.
   */
  audit?: (record: EgressAudit) => void
  /**
   * Told of every refusal, at once; must not throw. Of those that a budget kept out as `audit` is.
   */
  onRefused?: (event: EgressRefusedEvent) => void
}

/** The way out of one user's sandbox, whatever stream leads to it at the moment. */
export interface UserEgress {
  /**
   * How many connections the listener inside may keep open; a little more than the budget, which
   * answers better.
   */
  readonly connections: number
  /** What a command needs to find the way out at this port of the loopback interface. */
  environment(commandId: string, port: number): Record<string, string>
  /** A connection from inside. Never rejects. */
  serve(stream: Duplex): Promise<void>
  /** So many connections were refused inside, for want of room there. */
  refusedInside(count: number): void
  /** This command runs: connections may be its. */
  began(commandId: string): void
  /** It does not run any more; the hosts that were refused to it, each once. */
  ended(commandId: string): RefusedHost[]
}

export interface Egress {
  /**
   * The same one for the same user, so that budgets outlive a stream. Undefined: this user has no
   * way out.
   */
  forUser(userId: string): UserEgress | undefined
}

/** Most hosts that are named with one command, and most commands that are remembered. */
const MOST_HOSTS = 32
const MOST_COMMANDS = 1_024
const MORE_THAN_BUDGET = 32
const REPEAT_MS = 1_000
const LOOK_AGAIN_MS = 1_000
const NOT_THROUGH_PROXY = 'localhost,127.0.0.1,::1'

/** Throws `SandboxError` `invalid_arguments` for options that cannot be. */
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
  const open = createOpenConnections(rules, options.lookAgainMs ?? LOOK_AGAIN_MS)
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

/**
 * Reports the first of a kind at once and its repeats as a number: a program makes them for free.
 */
function countRepeats(tell: (reason: EgressReason, count: number) => void) {
  const waiting = new Map<EgressReason, number>()
  const say = (reason: EgressReason, count: number): void => {
    waiting.set(reason, 0)
    setTimeout(() => {
      const more = waiting.get(reason) ?? 0
      waiting.delete(reason)
      if (more > 0) say(reason, more)
    }, REPEAT_MS).unref()
    tell(reason, count)
  }
  return (reason: EgressReason, count: number): void => {
    const before = waiting.get(reason)
    if (before === undefined) say(reason, count)
    else waiting.set(reason, before + count)
  }
}

/** Which commands run, and what was refused to them. */
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
     * The command's id is the user name in its proxy's address. A program that does not say it
     * belongs to the only command there is. It is a hint among commands of one user, nothing is
     * decided by it.
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
 * In both spellings, for every program reads another one. The password is there only because some
 * ask for a missing one.
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
    // git would otherwise keep the user name to itself until it is asked.
    GIT_HTTP_PROXY_AUTHMETHOD: 'basic',
    // Node's own fetch looks at the variables only then.
    NODE_USE_ENV_PROXY: '1',
  }
}
