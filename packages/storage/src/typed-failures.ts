/** What a database throws about itself becomes a `StorageError` at the edge of a store, whatever method was called. */
import { asStorageError } from './sqlite-file.ts'

/**
 * The same object, each of its own methods rejecting with a `StorageError` where the file at `path` is the reason, or with
 * what `said` makes of it for users that know other errors.
 */
export function withTypedFailures<Store extends object>(
  path: string,
  store: Store,
  said: (failure: unknown) => unknown = (failure) => failure,
): Store {
  const methods = Object.entries(store).map(([name, member]: [string, unknown]) => {
    if (typeof member !== 'function') return [name, member]
    const typed = async (...args: unknown[]): Promise<unknown> => {
      try {
        return await Reflect.apply(member, store, args)
      } catch (error) {
        throw said(asStorageError(path, error))
      }
    }
    return [name, typed]
  })
  return Object.fromEntries(methods) as Store
}
