/** Reloads the deployment's rows that this agent caches when another one has changed them. */
import type { Ownership } from './ownership.ts'

interface CachedRows {
  people: {
    reload(userId?: string): Promise<void>
    forget(userId: string): void
    readonly all: ReadonlyMap<string, unknown>
  }
  settings: { reload(): Promise<void>; forget(userId: string): void }
  models: { reload(): Promise<void> }
  servers: { reload(what: 'servers' | 'values'): Promise<void>; forget(userId: string): void }
  removals: { add(userId: string): void }
  forgetRules: () => void
  removedPeople: () => Promise<ReadonlySet<string>>
  /** Judges again this person's access to others' chats. */
  recheck: (userId: string) => void
}

/** From now on. A change whose id is not known is one of all of its kind. */
export function followChanges(ownership: Pick<Ownership, 'onChange'>, cached: CachedRows): void {
  const { people, settings, models, servers, removals } = cached
  const removed = (userId: string): void => {
    removals.add(userId)
    people.forget(userId)
    settings.forget(userId)
    servers.forget(userId)
    cached.recheck(userId)
  }
  ownership.onChange('people', async (userId) => {
    await people.reload(userId)
    for (const id of userId === undefined ? people.all.keys() : [userId]) cached.recheck(id)
  })
  ownership.onChange('settings', () => settings.reload())
  ownership.onChange('models', () => models.reload())
  ownership.onChange('servers', () => servers.reload('servers'))
  // Keys of endpoints and values of servers are stored after what they belong to.
  ownership.onChange('secrets', async () => {
    await models.reload()
    await servers.reload('values')
  })
  ownership.onChange('rules', () => cached.forgetRules())
  ownership.onChange('removed', async (userId) => {
    cached.forgetRules()
    for (const id of userId === undefined ? await cached.removedPeople() : [userId]) removed(id)
  })
}
