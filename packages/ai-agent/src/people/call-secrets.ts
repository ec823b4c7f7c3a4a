/** The secrets that one call has read. Whatever the call then says goes without their values. */
import { ToolError } from '../tools/tool-error.ts'
import type { ToolOutcome, ToolUpdate } from '../tools/tool.ts'

const HIDDEN = '[hidden]'
/** Shorter ones would take pieces out of ordinary words. */
const MIN_CHARS = 6

export interface CallSecrets {
  /** Rejects with `needs_auth` when the user has not set it. */
  secret(name: string): Promise<string>
  /** The same without the values that were read, whatever it is made of. */
  without<T extends ToolUpdate | ToolOutcome>(said: T): T
}

/** `read`: the user's secret. */
export function createCallSecrets(read: (name: string) => Promise<string | undefined>): CallSecrets {
  const values = new Set<string>()
  return {
    async secret(name) {
      const value = await read(name)
      if (value === undefined)
        throw new ToolError(
          'needs_auth',
          `This needs the secret ${name}, which the user has not set. Ask them to set it under Settings → Secrets.`,
        )
      if (value.length >= MIN_CHARS) values.add(value)
      return value
    },
    without: (said) => (values.size === 0 ? said : withoutSecrets(said, [...values])),
  }
}

/** The same without these values, whatever it is made of. */
export function withoutSecrets<T>(said: T, secrets: readonly string[]): T {
  return clean(said, secrets.toSorted(longest)) as T
}

const longest = (a: string, b: string): number => b.length - a.length

function clean(value: unknown, secrets: readonly string[]): unknown {
  if (typeof value === 'string')
    return secrets.reduce((text, secret) => text.replaceAll(secret, HIDDEN), value)
  if (Array.isArray(value)) return value.map((item) => clean(item, secrets))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, field]) => [clean(key, secrets), clean(field, secrets)]),
  )
}
