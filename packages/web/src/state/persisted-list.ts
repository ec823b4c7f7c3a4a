/** A list of the tab's that survives a reload. */
import { z } from 'zod'
import type { KeyValue } from '../lib/storage.ts'

interface PersistedList<T> {
  load(storage: KeyValue): T[]
  save(storage: KeyValue, list: readonly T[]): void
}

/** `what`: named in the log when a stored list cannot be read. */
export function persistedList<T>(key: string, item: z.ZodType<T>, what: string): PersistedList<T> {
  return {
    load(storage) {
      const stored = storage.get(key)
      if (stored === null) return []
      try {
        return z.array(item).parse(JSON.parse(stored))
      } catch (error) {
        console.warn(`${what} of an older version were dropped.`, error)
        return []
      }
    },
    save(storage, list) {
      if (list.length === 0) storage.remove(key)
      else storage.set(key, JSON.stringify(list))
    },
  }
}
