/** A list of the tab's that survives a reload. */
import { z } from 'zod'
import type { KeyValue } from '../lib/storage.ts'

export interface KeptList<T> {
  load(storage: KeyValue): T[]
  save(storage: KeyValue, list: readonly T[]): void
}

/** `what`: whose loss is told, should another version have written what cannot be read. */
export function keptList<T>(key: string, item: z.ZodType<T>, what: string): KeptList<T> {
  return {
    load(storage) {
      const kept = storage.get(key)
      if (kept === null) return []
      try {
        return z.array(item).parse(JSON.parse(kept))
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
