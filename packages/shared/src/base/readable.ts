/**
 * Values of another process of which a part cannot be read: that part is left out, and the rest
 * arrives.
 */
import type { z } from 'zod'

type Readable<T> =
  | {
      ok: true
      /** As it was received, without the unreadable parts; what the schema does not know stays. */
      value: unknown
      data: T
      /** One sentence for each part that was left out. */
      problems: string[]
    }
  | { ok: false; problems: string[] }

type Path = readonly PropertyKey[]

/** What is left out may take what holds it along, so often at most. */
const MOST_ROUNDS = 16

/**
 * Leaves out the smallest parts that keep the rest from being read: an optional field, an item of a
 * list, or what cannot be without them. Not ok: nothing of it can be read.
 */
export function readReadable<T>(schema: z.ZodType<T>, received: unknown): Readable<T> {
  const problems: string[] = []
  let value = received
  for (let round = 0; round < MOST_ROUNDS; round++) {
    const { success, data, error } = schema.safeParse(value)
    if (success) return { ok: true, value, data, problems }
    const paths = error.issues.map(({ path }) => pathIn(value, path))
    problems.push(...error.issues.map(({ path, message }) => `${path.map(String).join('.')}: ${message}`))
    if (paths.some(({ length }) => length === 0)) break
    value = without(value, paths)
  }
  return { ok: false, problems }
}

/** Of what is absent and may not be, what holds it. */
function pathIn(value: unknown, path: Path): Path {
  const [key, ...deeper] = path
  if (key === undefined || typeof value !== 'object' || value === null || !Object.hasOwn(value, key))
    return []
  return [key, ...pathIn(Reflect.get(value, key), deeper)]
}

function without(value: unknown, paths: readonly Path[]): unknown {
  if (paths.length === 0 || typeof value !== 'object' || value === null) return value
  const left = Object.entries(value).flatMap(([key, item]: [string, unknown]) => {
    const deeper = paths.flatMap(([first, ...rest]) => (String(first) === key ? [rest] : []))
    return deeper.some(({ length }) => length === 0) ? [] : [[key, without(item, deeper)] as const]
  })
  return Array.isArray(value) ? left.map(([, item]) => item) : Object.fromEntries(left)
}
