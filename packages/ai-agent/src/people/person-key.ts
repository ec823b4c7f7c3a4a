/**
 * A person in the configuration: by user id, or by the e-mail address of their sign-in. Not by
 * display name: two people may have the same one.
 */
import { z } from 'zod'

const ID = /^[A-Za-z0-9_-]{1,128}$/
const WRITE = 'write a user id or the e-mail address that they sign in with'

/** In small letters where it is an address. */
export const personKey = z
  .string()
  .max(254)
  .superRefine((key, ctx) => {
    if (ID.test(key) || z.email().safeParse(key).success) return
    const problem = key.includes('@') ? 'is no e-mail address' : 'is no user id, and names are not unique'
    ctx.addIssue({ code: 'custom', message: `${JSON.stringify(key)} ${problem}; ${WRITE}` })
  })
  .transform(normalKey)

/** Addresses are compared without regard to case, ids are not. */
export function normalKey(key: string): string {
  return key.includes('@') ? key.toLowerCase() : key
}

/** A record by person. Refuses one who is there twice in another spelling. */
export function byPerson<S extends z.ZodType>(settings: S) {
  return z.record(z.string(), settings).transform((record, ctx) => {
    const people: Record<string, z.output<S>> = Object.create(null) as Record<string, z.output<S>>
    for (const [written, value] of Object.entries(record)) {
      const key = personKey.safeParse(written)
      const message = key.success
        ? Object.hasOwn(people, key.data)
          ? `${written} is there twice`
          : undefined
        : key.error.issues[0]?.message
      if (message !== undefined) ctx.addIssue({ code: 'custom', message, path: [written] })
      if (key.success) people[key.data] = value
    }
    return people
  })
}
