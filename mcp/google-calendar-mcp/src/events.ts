/** Google's events, and the part that the tool returns: the same names, fewer fields. */
import { ToolFailure } from '@sandlot/mcp-kit/tool-failure'
import { z } from 'zod'

const TEXT_CHARS = 1_000
const ATTENDEES = 30

const text = z.string().optional()
const when = z.object({
  /** Set for an all-day event. */
  date: text,
  dateTime: text,
  timeZone: text,
})
const person = z.object({ email: text, displayName: text, responseStatus: text })

/** The fields of an event that we return. `end` is exclusive; `recurrence`: listed once for all. */
export const calendarEvent = z.object({
  id: z.string(),
  status: text,
  summary: text,
  description: text,
  location: text,
  start: when.optional(),
  end: when.optional(),
  recurrence: z.array(z.string()).optional(),
  recurringEventId: text,
  organizer: person.optional(),
  attendees: z.array(person).optional(),
  htmlLink: text,
  hangoutLink: text,
})
export type CalendarEvent = z.output<typeof calendarEvent>

/** One page of an answer. */
interface EventsPage {
  events: CalendarEvent[]
  nextPageToken?: string
}

const page = z.object({
  kind: z.literal('calendar#events'),
  items: z.array(calendarEvent).default([]),
  nextPageToken: text,
})

/** Throws `bad_answer` when the answer is not a page of events. */
export function eventsPageOf(answer: unknown): EventsPage {
  const read = page.safeParse(withoutNulls(answer))
  if (!read.success)
    throw new ToolFailure('bad_answer', 'Google’s answer has an unexpected format. Try again later.')
  const { items, nextPageToken = '' } = read.data
  return { events: items.map(shortened), ...(nextPageToken === '' ? {} : { nextPageToken }) }
}

function shortened(event: CalendarEvent): CalendarEvent {
  const { description, attendees } = event
  return {
    ...event,
    description: description === undefined ? undefined : short(description),
    attendees: attendees?.slice(0, ATTENDEES),
  }
}

function short(words: string): string {
  return words.length <= TEXT_CHARS ? words : `${words.slice(0, TEXT_CHARS - 1).toWellFormed()}…`
}

/** JSON without nulls, which mean “absent”. */
function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls)
  if (typeof value !== 'object' || value === null) return value
  const fields = Object.entries(value).filter(([, field]) => field !== null)
  return Object.fromEntries(fields.map(([name, field]) => [name, withoutNulls(field)]))
}
