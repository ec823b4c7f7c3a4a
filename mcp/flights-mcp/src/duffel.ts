/**
 * The only file that knows Duffel's library: an offer request out, its answer or one of our
 * failures back.
 */
import { Duffel, DuffelError } from '@duffel/api'
import { withSignal } from '@sandlot/mcp-kit/abort-requests'
import { failureOfStatus } from '@sandlot/mcp-kit/http-failure'
import { ToolFailure } from '@sandlot/mcp-kit/tool-failure'
import { z } from 'zod'
import type { Search } from './search-input.ts'

const TOKEN_HELP = 'Set DUFFEL_ACCESS_TOKEN to a valid access token of your Duffel account.'
/** Duffel asks the airlines for at most this part of our own time limit. */
const AIRLINES_SHARE = 0.8

interface DuffelOptions {
  token: string | undefined
  apiUrl: string
  timeoutMs: number
  /** Epoch milliseconds. */
  now: () => number
}

/** Ask for offers. Returns the answer's `data` as it came. Throws `ToolFailure`. */
type AskOffers = (search: Search, signal: AbortSignal) => Promise<unknown>

export function makeAskOffers({ token, apiUrl, timeoutMs, now }: DuffelOptions): AskOffers {
  const client = token === undefined ? undefined : new Duffel({ token, basePath: apiUrl })
  return async (search, signal) => {
    if (client === undefined)
      throw new ToolFailure('needs_auth', `Flights cannot be searched yet. ${TOKEN_HELP}`)
    try {
      // The library takes no signal, and would wait for ever.
      const answer = await withSignal(signal, () =>
        client.offerRequests.create({
          slices: slicesOf(search),
          passengers: Array.from({ length: search.adults }, () => ({ type: 'adult' as const })),
          cabin_class: search.cabin_class,
          max_connections: search.max_connections as 0 | 1 | 2,
          return_offers: true,
          supplier_timeout: Math.max(2_000, Math.round(timeoutMs * AIRLINES_SHARE)),
        }),
      )
      return answer.data
    } catch (error) {
      throw failureOf(error, now())
    }
  }
}

type Slices = Parameters<Duffel['offerRequests']['create']>[0]['slices']

function slicesOf({ origin, destination, departure_date, return_date }: Search): Slices {
  // The library's types want times of day, which the API does not.
  const slice = (from: string, to: string, date: string): Slices[number] =>
    ({ origin: from, destination: to, departure_date: date }) as Slices[number]
  return [
    slice(origin, destination, departure_date),
    ...(return_date === undefined ? [] : [slice(destination, origin, return_date)]),
  ]
}

const said = z.array(z.object({ title: z.string().nullish(), message: z.string().nullish() }))

function failureOf(error: unknown, now: number): ToolFailure {
  if (error instanceof DuffelError && error.status !== undefined && error.status >= 400) {
    const first = said.safeParse(error.errors).data?.[0]
    return failureOfStatus(
      {
        service: 'Duffel',
        status: error.status,
        credential: TOKEN_HELP,
        subject: 'airport, or no such route',
        said: [first?.title, first?.message].filter((text) => text != null).join(': '),
        retryAfter: error.headers.get('retry-after') ?? error.headers.get('ratelimit-reset'),
      },
      now,
    )
  }
  // Of its own making: a body that is not JSON, or an error object under a good status. Their
  // messages quote the body.
  if (error instanceof DuffelError || error instanceof TypeError || isBadJson(error))
    return new ToolFailure('bad_answer', 'Duffel’s answer cannot be read. Try again later.')
  return new ToolFailure('unavailable', 'Duffel cannot be reached. Try again later.', { cause: error })
}

/** node-fetch's error for a body that is no JSON. */
function isBadJson(error: unknown): boolean {
  return error instanceof Error && 'type' in error && error.type === 'invalid-json'
}
