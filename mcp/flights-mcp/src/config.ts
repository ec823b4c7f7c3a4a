/** Settings of the server. The only file here that reads the environment. */
import { readFileSync } from 'node:fs'
import { apiAddress } from '@sandlot/mcp-kit/config-shapes'
import { type Environment, readConfig, wholeNumber } from '@sandlot/shared/config'
import { z } from 'zod'

const variables = z.object({
  DUFFEL_ACCESS_TOKEN: z.string().trim().min(1).optional(),
  DUFFEL_API_URL: apiAddress.default('https://api.duffel.com'),
  FLIGHTS_PER_MINUTE: wholeNumber(1, 1_000).default(20),
  FLIGHTS_CACHE_SECONDS: wholeNumber(1, 3_600).default(300),
  FLIGHTS_TIMEOUT_MS: wholeNumber(100, 60_000).default(10_000),
})

export interface FlightsConfig {
  /** Undefined: the server starts, and every search fails with a hint. */
  token: string | undefined
  apiUrl: string
  /** Searches of one user that reach Duffel. */
  perMinute: number
  cacheMs: number
  timeoutMs: number
}

/** Each name may also be given as `NAME_FILE`. @throws ConfigError with every problem at once. */
export function readFlightsConfig(env: Environment = process.env): FlightsConfig {
  const read = readConfig(variables, env, (path) => readFileSync(path, 'utf8'))
  return {
    token: read.DUFFEL_ACCESS_TOKEN,
    apiUrl: read.DUFFEL_API_URL,
    perMinute: read.FLIGHTS_PER_MINUTE,
    cacheMs: read.FLIGHTS_CACHE_SECONDS * 1_000,
    timeoutMs: read.FLIGHTS_TIMEOUT_MS,
  }
}
