/** Values of another process with unreadable parts: these are dropped, the rest is used. */
import type { z } from 'zod'

type Readable<T> =
  | {
      ok: true
      /** The received value without its unreadable parts; members unknown to the schema stay. */
      value: unknown
      data: T
      /** One sentence for each dropped part. */
      problems: string[]
    }
  | { ok: false; problems: string[] }

type Path = readonly PropertyKey[]

/** A dropped part may take its container along; the limit of such rounds. */
const MOST_ROUNDS = 16

/**
 * Drops the smallest parts that make the rest unreadable: an optional field, an item of a list, or
 * a container that needs them. Not ok: nothing is readable.
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

/** The path of an absent required member's container. */
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
