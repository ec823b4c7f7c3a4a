/** The tool `search-flights`. */
import { Lookups, keyOf } from '@sandlot/mcp-kit/lookups'
import type { ServedTool } from '@sandlot/mcp-kit/serve'
import { z } from 'zod'
import type { FlightsConfig } from './config.ts'
import { makeAskOffers } from './duffel.ts'
import { type FlightsFound, flight, flightsOf } from './flights.ts'
import { checkSearch, searchInput } from './search-input.ts'

/** `partial`: some offers are not shown, or could not be parsed. */
const output = z.object({
  flights: z.array(flight),
  count: z.int(),
  status: z.enum(['success', 'partial']),
})

interface SearchParts {
  config: FlightsConfig
  /** Epoch milliseconds. */
  now: () => number
}

export function searchFlights({ config, now }: SearchParts): ServedTool<typeof searchInput, typeof output> {
  const { perMinute, cacheMs, timeoutMs } = config
  const ask = makeAskOffers({ ...config, now })
  const lookups = new Lookups<FlightsFound>({ service: 'Duffel', perMinute, freshMs: cacheMs, timeoutMs })
  return {
    name: 'search-flights',
    title: 'Search flights',
    description:
      'Finds flights that can be bought, cheapest first, with price, times and changes of plane. Searches only; it books nothing.',
    input: searchInput,
    output,
    async run(search, { userId, signal }) {
      checkSearch(search, now())
      // Offers depend only on the search, so all users share them.
      const lookup = { userId, key: keyOf(search), signal }
      const { found, cached } = await lookups.find(lookup, async (until) =>
        flightsOf(await ask(search, until)),
      )
      const { flights } = found
      const notice = noticeOf(found)
      const status = notice === undefined ? 'success' : 'partial'
      return {
        value: { flights, count: flights.length, status },
        cached,
        notice,
      }
    },
  }
}

function noticeOf({ flights, offered, unreadable }: FlightsFound): string | undefined {
  const notes = [
    ...(offered > flights.length
      ? [
          `These are the ${flights.length} cheapest of ${offered} offers. Search with fewer connections, another cabin or another day for others.`,
        ]
      : []),
    ...(unreadable > 0 ? [`${unreadable} more offers could not be parsed.`] : []),
  ]
  return notes.length === 0 ? undefined : `[${notes.join(' ')}]`
}
