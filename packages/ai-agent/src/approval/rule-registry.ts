/**
 * The rules that hold for a person: everybody's, of the configuration and of administrators, and
 * their own.
 */
import { SandlotError } from '@sandlot/shared/base/errors'
import { randomText } from '@sandlot/shared/base/ids'
import type { NewAudit } from '@sandlot/shared/admin/audit'
import type { Rule, RuleEffect, RuleMatch } from '@sandlot/shared/chat/rules'
import type { RuleStore } from '@sandlot/storage/sessions/rules'
import type { UserRule } from '@sandlot/storage/tables/records'
import { LRUCache } from 'lru-cache'
import { matchProblem } from './match.ts'
import type { Remembering } from './options.ts'
import type { RuleSettings } from './config.ts'
import type { SessionStore } from '@sandlot/storage/sessions/store'

interface NewRule {
  effect: RuleEffect
  match: RuleMatch
  /** Epoch milliseconds. */
  expiresAt?: number | undefined
}

/** The owner of rows for everybody: no person has this id. */
const EVERYBODY = 'deployment:rules'

export class RuleRegistry {
  readonly #store: RuleStore
  readonly #settings: RuleSettings
  readonly #now: () => number

  constructor(store: RuleStore, settings: RuleSettings, now: () => number) {
    this.#store = store
    this.#settings = settings
    this.#now = now
  }

  /** The longest time for which users may have approvals remembered. */
  get remember(): Remembering {
    return this.#settings.remember
  }

  /** Everybody's, of the configuration file. */
  get configured(): readonly Rule[] {
    return this.#settings.deployment
  }

  /** Everybody's that administrators made, oldest first. Rejects when the store fails. */
  async everybodys(): Promise<Rule[]> {
    const rules = await this.#store.list(EVERYBODY)
    return rules.map((rule) => ({ ...rule, origin: 'deployment' }))
  }

  /** From the next call on. Throws `bad_request` (it can never match), `too_large`. */
  async addForEverybody(
    { effect, match }: Pick<NewRule, 'effect' | 'match'>,
    actor: Pick<NewAudit, 'who' | 'from'>,
  ): Promise<Rule> {
    const problem = matchProblem(match)
    if (problem !== undefined) throw new SandlotError('bad_request', `This rule ${problem}.`)
    const rule = { id: newRuleId(), effect, match, createdAt: this.#now() }
    await this.#store.add(EVERYBODY, rule, {
      ...actor,
      what: 'rules_changed',
      whom: { id: rule.id },
      after: { effect, match },
    })
    return { ...rule, origin: 'deployment' }
  }

  /** Throws `not_found`. */
  async revokeForEverybody(id: string, actor: Pick<NewAudit, 'who' | 'from'>): Promise<void> {
    const held = (await this.everybodys()).find((rule) => rule.id === id)
    const before = held && { effect: held.effect, match: held.match }
    const audit = { ...actor, what: 'rules_changed', whom: { id }, before } as const
    if (await this.#store.revoke(EVERYBODY, id, audit)) return
    throw new SandlotError('not_found', 'There is no such rule for everybody.')
  }

  /**
   * Everything that holds now for this person: where a session is named only what holds in it, with
   * this prompt of it. Rejects when the store fails: then nothing may be judged.
   */
  async of(userId: string, at?: { sessionId: string; promptId: string | undefined }): Promise<Rule[]> {
    const own = await this.list(userId)
    return [
      ...this.configured,
      ...(await this.everybodys()),
      ...own.filter((rule) => at === undefined || holdsAt(rule, at)),
    ]
  }

  /** This person's own rules that have not expired, oldest first. */
  async list(userId: string): Promise<Rule[]> {
    const now = this.#now()
    const rules = await this.#store.list(userId)
    return rules
      .filter(({ expiresAt }) => expiresAt === undefined || expiresAt > now)
      .map((rule) => (rule.endsWith === undefined ? rule : { ...rule, origin: 'session' }))
  }

  /** Allows a host until the prompt has ended: the meaning of “allow once”. */
  async allowOnce(userId: string, host: string, endsWith: NonNullable<Rule['endsWith']>): Promise<void> {
    await this.#store.add(userId, this.make('allow', { host }, { endsWith }))
  }

  /**
   * Throws `bad_request` (it can never match, or is over already), `forbidden` (no user may keep
   * what allows), `too_large`.
   */
  async add(
    userId: string,
    { effect, match, expiresAt }: NewRule,
    audit?: (rule: UserRule) => NewAudit,
  ): Promise<Rule> {
    const problem = matchProblem(match)
    if (problem !== undefined) throw new SandlotError('bad_request', `This rule ${problem}.`)
    if (effect === 'allow' && this.remember !== 'always')
      throw new SandlotError(
        'forbidden',
        'The operator of this Sandlot has switched off rules that allow something.',
      )
    if (expiresAt !== undefined && expiresAt <= this.#now())
      throw new SandlotError('bad_request', 'This rule would be over before it begins.')
    const rule = this.make(effect, match, expiresAt === undefined ? {} : { expiresAt })
    await this.#store.add(userId, rule, audit?.(rule))
    return { ...rule, origin: 'user' }
  }

  /** Throws `not_found`. */
  async revoke(userId: string, id: string, audit?: NewAudit): Promise<void> {
    if (await this.#store.revoke(userId, id, audit)) return
    throw new SandlotError('not_found', 'There is no such rule of yours.')
  }

  /** A rule to be stored. What allows lasts no longer than everybody's limit. */
  make(effect: RuleEffect, match: RuleMatch, ends: Pick<Rule, 'expiresAt' | 'endsWith'> = {}): UserRule {
    const createdAt = this.#now()
    const { lastMs } = this.#settings
    const most = lastMs === undefined || effect !== 'allow' ? undefined : createdAt + lastMs
    const { expiresAt: wanted, endsWith } = ends
    const expiresAt = wanted === undefined ? most : Math.min(wanted, most ?? wanted)
    return {
      id: newRuleId(),
      effect,
      match,
      createdAt,
      expiresAt,
      endsWith,
    }
  }
}

function newRuleId(): string {
  return `rule_${randomText(16)}`
}

/** True if the rule is one for all, or for this session, or for this prompt of it. */
export function holdsAt(
  { endsWith }: Rule,
  at: { sessionId: string; promptId: string | undefined },
): boolean {
  if (endsWith === undefined) return true
  if (endsWith.sessionId !== at.sessionId) return false
  return endsWith.promptId === undefined || endsWith.promptId === at.promptId
}

// ── Rules in memory ─────────────────────────────────────────────────────────────────────────────

/** People whose rules are cached. */
const MOST_PEOPLE = 1_000

type Cached = Pick<SessionStore, 'log' | 'sessions' | 'people'>

/**
 * The same store. Once a change of it has resolved, or failed, the next read of rules reloads them;
 * so it does after `forgetRules`, for changes of another process. `keeps`: whether a user's rules
 * change in this process only, and may be cached.
 */
export function withCachedRules<Store extends Cached>(
  store: Store,
  keeps: (userId: string) => boolean = () => true,
): Store & { forgetRules: () => void } {
  const { rules } = store.people
  const cache = new LRUCache<string, Promise<Rule[]>>({ max: MOST_PEOPLE })
  const forgetAfter = async <T>(change: Promise<T>): Promise<T> => {
    try {
      return await change
    } finally {
      // All users': a prompt that ends removes rules, and its user is unknown here.
      // What is being read now is forgotten with the rest, as it may have been read before the
      // change.
      cache.clear()
    }
  }
  return {
    ...store,
    forgetRules: () => cache.clear(),
    log: {
      ...store.log,
      append: (sessionId, events, effects, ...owned) => {
        const appended = store.log.append(sessionId, events, effects, ...owned)
        const changes = effects?.rules !== undefined || effects?.runningPromptId !== undefined
        return changes ? forgetAfter(appended) : appended
      },
    },
    sessions: {
      ...store.sessions,
      remove: (id, audit) => forgetAfter(store.sessions.remove(id, audit)),
    },
    people: {
      ...store.people,
      known: {
        ...store.people.known,
        remove: (userId, at) => forgetAfter(store.people.known.remove(userId, at)),
      },
      rules: {
        ...rules,
        list(userId) {
          const known = cache.get(userId)
          if (known !== undefined) return known
          const reading = rules.list(userId)
          if (userId !== EVERYBODY && !keeps(userId)) return reading
          cache.set(userId, reading)
          reading.catch(() => {
            if (cache.peek(userId) === reading) cache.delete(userId)
          })
          return reading
        },
        add: (userId, rule, audit) => forgetAfter(rules.add(userId, rule, audit)),
        revoke: (userId, id, audit) => forgetAfter(rules.revoke(userId, id, audit)),
      },
    },
  }
}
