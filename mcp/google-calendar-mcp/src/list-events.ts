/** The tool `list-events`: requests pages until there are enough events. */
import { Lookups, keyOf } from '@sandlot/mcp-kit/lookups'
import type { ServedTool } from '@sandlot/mcp-kit/serve'
import { ToolFailure } from '@sandlot/mcp-kit/tool-failure'
import { z } from 'zod'
import type { CalendarConfig } from './config.ts'
import { type CalendarEvent, calendarEvent, eventsPageOf } from './events.ts'
import { type AskPage, makeAskPage } from './google.ts'
import { type Listing, listInput, listingOf } from './list-input.ts'

/** Limit: Google may send small or empty pages. */
const MAX_PAGES = 30

/** `partial`: there are more events than requested. */
const output = z.object({
  events: z.array(calendarEvent),
  count: z.int(),
  status: z.enum(['success', 'partial']),
})

interface EventsFound {
  events: CalendarEvent[]
  more: boolean
}

interface ListParts {
  config: CalendarConfig
  /** Epoch milliseconds. */
  now: () => number
}

export function listEvents({ config, now }: ListParts): ServedTool<typeof listInput, typeof output> {
  const { perMinute, cacheMs, timeoutMs } = config
  const ask = makeAskPage({ ...config, now })
  const lookups = new Lookups<EventsFound>({
    service: 'Google Calendar',
    perMinute,
    freshMs: cacheMs,
    timeoutMs,
  })
  return {
    name: 'list-events',
    title: 'List calendar events',
    description: 'Lists events of a Google calendar in a span of time. Reads only; it changes nothing.',
    input: listInput,
    output,
    async run(input, { userId, signal }) {
      const listing = listingOf(input)
      const lookup = { userId, key: keyOf(listing, userId), signal }
      const { found, cached } = await lookups.find(lookup, (until) => listAll(ask, listing, until))
      const { events, more } = found
      const value = { events, count: events.length, status: more ? 'partial' : 'success' } as const
      return more ? { value, cached, notice: noticeOf(listing, events) } : { value, cached }
    },
  }
}

async function listAll(ask: AskPage, listing: Listing, signal: AbortSignal): Promise<EventsFound> {
  const events: CalendarEvent[] = []
  const asked = new Set<string>()
  let pageToken: string | undefined
  do {
    const wanted = { ...listing, maxResults: listing.maxResults - events.length }
    const page = eventsPageOf(await ask(pageToken === undefined ? wanted : { ...wanted, pageToken }, signal))
    events.push(...page.events)
    pageToken = page.nextPageToken
    if (pageToken !== undefined && (asked.has(pageToken) || asked.size >= MAX_PAGES))
      throw new ToolFailure('bad_answer', 'Google sent too many pages. Ask for a shorter span of time.')
    if (pageToken !== undefined) asked.add(pageToken)
  } while (pageToken !== undefined && events.length < listing.maxResults)
  const kept = events.slice(0, listing.maxResults)
  return { events: kept, more: pageToken !== undefined || events.length > kept.length }
}

function noticeOf({ maxResults, singleEvents }: Listing, events: readonly CalendarEvent[]): string {
  const last = events.at(-1)?.start
  const from = last?.dateTime ?? last?.date
  const next =
    singleEvents && from !== undefined ? `continue with timeMin ${from}` : 'ask for a shorter span of time'
  return `[These are ${events.length} events, and there are more: ${next}, or raise maxResults (${maxResults}, at most 2500).]`
}
