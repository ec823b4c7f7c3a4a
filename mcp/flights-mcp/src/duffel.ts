/** Requests offers from Duffel. The only file that imports its library. */
import { Duffel, DuffelError } from '@duffel/api'
import { withSignal } from '@sandlot/mcp-kit/abort-requests'
import { failureOfStatus } from '@sandlot/mcp-kit/http-failure'
import { ToolFailure } from '@sandlot/mcp-kit/tool-failure'
import { z } from 'zod'
import type { Search } from './search-input.ts'

const TOKEN_HELP = 'Set DUFFEL_ACCESS_TOKEN to a valid access token of your Duffel account.'
/** Share of our time limit that Duffel may wait for airlines. */
const AIRLINES_SHARE = 0.8

interface DuffelOptions {
  token: string | undefined
  apiUrl: string
  timeoutMs: number
  /** Epoch milliseconds. */
  now: () => number
}

/** Returns the `data` of the answer, unparsed. Throws `ToolFailure`. */
type AskOffers = (search: Search, signal: AbortSignal) => Promise<unknown>

export function makeAskOffers({ token, apiUrl, timeoutMs, now }: DuffelOptions): AskOffers {
  const client = token === undefined ? undefined : new Duffel({ token, basePath: apiUrl })
  return async (search, signal) => {
    if (client === undefined)
      throw new ToolFailure('needs_auth', `Flight search is not set up yet. ${TOKEN_HELP}`)
    try {
      // The library takes no signal and has no time limit.
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
  // The library's types require times of day, the API does not.
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
  // The library's own errors: a body that is not JSON, or an error object with a success status.
  // Their messages quote the body.
  if (error instanceof DuffelError || error instanceof TypeError || isBadJson(error))
    return new ToolFailure('bad_answer', 'Couldn’t parse Duffel’s answer. Try again later.')
  return new ToolFailure('unavailable', 'Couldn’t connect to Duffel. Try again later.', { cause: error })
}

/** node-fetch's error for a body that is not JSON. */
function isBadJson(error: unknown): boolean {
  return error instanceof Error && 'type' in error && error.type === 'invalid-json'
}
