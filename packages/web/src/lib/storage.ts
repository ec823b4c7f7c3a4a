/**
 * The browser's storage as a place that may be missing: private windows and strict settings refuse
 * it, and a full one throws. What is kept here is convenience (drafts, theme, unsent messages), so
 * a refusal is logged once and lived with.
 */
export interface KeyValue {
  get(key: string): string | null
  set(key: string, value: string): void
  remove(key: string): void
}

/** Keeps nothing across a reload. For tests and for browsers that refuse storage. */
export function memoryStorage(): KeyValue {
  const values = new Map<string, string>()
  return {
    get: (key) => values.get(key) ?? null,
    set: (key, value) => void values.set(key, value),
    remove: (key) => void values.delete(key),
  }
}

/**
 * The part of `storage` that is this person's: the next person on the same browser finds
 * nothing of it.
 */
export function storageOfPerson(storage: KeyValue, userId: string): KeyValue {
  const own = (key: string) => `${key}.of.${userId}`
  return {
    get: (key) => storage.get(own(key)),
    set: (key, value) => storage.set(own(key), value),
    remove: (key) => storage.remove(own(key)),
  }
}

/** Storage of unsent text, for this session or (null) for a new chat. */
export type UnsentStorage = (sessionId: string | null) => KeyValue

/**
 * A session's is the same in all tabs. A new chat belongs to its tab: in each, another one may
 * begin.
 */
export function unsentStorage(local: KeyValue, tab: KeyValue, userId: string): UnsentStorage {
  const [ofSessions, ofNewChat] = [storageOfPerson(local, userId), storageOfPerson(tab, userId)]
  return (sessionId) => (sessionId === null ? ofNewChat : ofSessions)
}

/** `kind`: `local` is shared by all tabs and stays; `session` belongs to one tab. */
export function browserStorage(kind: 'local' | 'session'): KeyValue {
  try {
    const storage = kind === 'local' ? window.localStorage : window.sessionStorage
    return {
      get: (key) => storage.getItem(key),
      remove: (key) => storage.removeItem(key),
      set: (key, value) => {
        try {
          storage.setItem(key, value)
        } catch (error) {
          console.warn(`Not kept (${key}): the browser’s storage is full.`, error)
        }
      },
    }
  } catch (error) {
    console.warn('Drafts and settings are not kept: the browser refuses storage.', error)
    return memoryStorage()
  }
}
