/** Settings of the server. The only file here that reads the environment. */
import { readFileSync } from 'node:fs'
import { apiAddress } from '@sandlot/mcp-kit/config-shapes'
import { ConfigError, type Environment, readConfig, wholeNumber } from '@sandlot/shared/config'
import { z } from 'zod'

const text = z.string().trim().min(1).optional()
const variables = z.object({
  GOOGLE_ACCESS_TOKEN: text,
  GOOGLE_REFRESH_TOKEN: text,
  GOOGLE_CLIENT_ID: text,
  GOOGLE_CLIENT_SECRET: text,
  GOOGLE_CALENDAR_API_URL: apiAddress.default('https://www.googleapis.com'),
  GOOGLE_TOKEN_URL: apiAddress.default('https://oauth2.googleapis.com/token'),
  CALENDAR_PER_MINUTE: wholeNumber(1, 1_000).default(60),
  CALENDAR_CACHE_SECONDS: wholeNumber(1, 3_600).default(60),
  CALENDAR_TIMEOUT_MS: wholeNumber(100, 60_000).default(10_000),
})

/** A token that expires within the hour, or one for new tokens. */
export type Credential =
  | { kind: 'access'; accessToken: string }
  | { kind: 'refresh'; refreshToken: string; clientId: string; clientSecret: string }

export interface CalendarConfig {
  /** Undefined: the server starts, and every call fails with a hint. */
  credential: Credential | undefined
  apiUrl: string
  tokenUrl: string
  /** Lookups of one user that reach Google. */
  perMinute: number
  cacheMs: number
  timeoutMs: number
  /** Values that must never appear in a log. */
  secrets: readonly string[]
}

/** Each name may also be given as `NAME_FILE`. @throws ConfigError with every problem at once. */
export function readCalendarConfig(env: Environment = process.env): CalendarConfig {
  const read = readConfig(variables, env, (path) => readFileSync(path, 'utf8'))
  const secrets = [read.GOOGLE_ACCESS_TOKEN, read.GOOGLE_REFRESH_TOKEN, read.GOOGLE_CLIENT_SECRET]
  return {
    credential: credentialOf(read),
    apiUrl: read.GOOGLE_CALENDAR_API_URL,
    tokenUrl: read.GOOGLE_TOKEN_URL,
    perMinute: read.CALENDAR_PER_MINUTE,
    cacheMs: read.CALENDAR_CACHE_SECONDS * 1_000,
    timeoutMs: read.CALENDAR_TIMEOUT_MS,
    secrets: secrets.filter((secret) => secret !== undefined),
  }
}

function credentialOf(read: z.output<typeof variables>): Credential | undefined {
  const { GOOGLE_ACCESS_TOKEN: accessToken, GOOGLE_REFRESH_TOKEN: refreshToken } = read
  if (refreshToken !== undefined) {
    const { GOOGLE_CLIENT_ID: clientId, GOOGLE_CLIENT_SECRET: clientSecret } = read
    if (clientId === undefined || clientSecret === undefined)
      throw new ConfigError([
        'GOOGLE_REFRESH_TOKEN: needs GOOGLE_CLIENT_ID and GOOGLE_CLIENT_SECRET of the client that it was issued to',
      ])
    return { kind: 'refresh', refreshToken, clientId, clientSecret }
  }
  return accessToken === undefined ? undefined : { kind: 'access', accessToken }
}
