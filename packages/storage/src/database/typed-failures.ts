/** Converts failures of a database into `StorageError` at the edge of a store. */
import type { Health } from './store-health.ts'

/**
 * The same object, and the stores in it, with methods that reject with a `StorageError` for a
 * failure of the database's file, or with the result of `mapFailure`. Records the failure in the
 * database's health.
 */
export function withTypedFailures<Store extends object>(
  health: Pick<Health, 'typed'>,
  store: Store,
  mapFailure: (failure: unknown) => unknown = (failure) => failure,
): Store {
  const methods = Object.entries(store).map(([name, member]: [string, unknown]) => {
    if (typeof member === 'object' && member !== null)
      return [name, withTypedFailures(health, member, mapFailure)]
    if (typeof member !== 'function') return [name, member]
    const typed = async (...args: unknown[]): Promise<unknown> => {
      try {
        return await Reflect.apply(member, store, args)
      } catch (error) {
        throw mapFailure(health.typed(error))
      }
    }
    return [name, typed]
  })
  return Object.fromEntries(methods) as Store
}
