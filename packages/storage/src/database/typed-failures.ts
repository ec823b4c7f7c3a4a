/**
 * What a database throws about itself becomes a `StorageError` at the edge of a store, whatever
 * method was called.
 */
import type { Health } from './store-health.ts'

/**
 * The same object, each of its own methods rejecting with a `StorageError` where the database's
 * file is the reason, or with what `said` maps it to. The failure is recorded in the database's
 * health.
 */
export function withTypedFailures<Store extends object>(
  health: Pick<Health, 'typed'>,
  store: Store,
  said: (failure: unknown) => unknown = (failure) => failure,
): Store {
  const methods = Object.entries(store).map(([name, member]: [string, unknown]) => {
    if (typeof member !== 'function') return [name, member]
    const typed = async (...args: unknown[]): Promise<unknown> => {
      try {
        return await Reflect.apply(member, store, args)
      } catch (error) {
        throw said(health.typed(error))
      }
    }
    return [name, typed]
  })
  return Object.fromEntries(methods) as Store
}
