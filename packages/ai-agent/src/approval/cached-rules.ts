/**
 * A store that keeps people's rules in memory until something changes that they hang on: the way out of the sandboxes asks for
 * them at every connection, and a thousand of them take the database milliseconds. This process is the only one that writes.
 */
import type { Rule } from '@sandlot/shared/rules'
import type { SessionStore } from '@sandlot/storage/sessions/store'

/** People whose rules are kept. With more the oldest are read again. */
const MOST_PEOPLE = 1_000

type Cached = Pick<SessionStore, 'append' | 'deleteSession' | 'rules' | 'people'>

/** The same store. Once a change of it has resolved, or failed, whoever asks for rules reads them anew. */
export function withCachedRules<Store extends Cached>(store: Store): Store {
  const kept = new Map<string, Promise<Rule[]>>()
  const forgetAfter = async <T>(change: Promise<T>): Promise<T> => {
    try {
      return await change
    } finally {
      // Of everybody: a prompt that ends takes rules with it, and here nobody knows whose it is. What is being read now is
      // forgotten with the rest, as it may have been read before the change.
      kept.clear()
    }
  }
  return {
    ...store,
    append: (sessionId, events, effects, epoch) => {
      const appended = store.append(sessionId, events, effects, epoch)
      const changes = effects?.rules !== undefined || effects?.runningPromptId !== undefined
      return changes ? forgetAfter(appended) : appended
    },
    deleteSession: (id) => forgetAfter(store.deleteSession(id)),
    people: {
      ...store.people,
      remove: (userId, at) => forgetAfter(store.people.remove(userId, at)),
    },
    rules: {
      ...store.rules,
      list(userId) {
        const known = kept.get(userId)
        if (known !== undefined) return known
        const reading = store.rules.list(userId)
        kept.set(userId, reading)
        for (const [oldest] of kept) if (kept.size > MOST_PEOPLE) kept.delete(oldest)
        reading.catch(() => {
          if (kept.get(userId) === reading) kept.delete(userId)
        })
        return reading
      },
      add: (userId, rule) => forgetAfter(store.rules.add(userId, rule)),
      revoke: (userId, id) => forgetAfter(store.rules.revoke(userId, id)),
    },
  }
}
