/** Arguments of a search: the schema for the model, and further checks. */
import { dayOf, isOver } from '@sandlot/mcp-kit/dates'
import { ToolFailure } from '@sandlot/mcp-kit/tool-failure'
import { z } from 'zod'

const airport = (which: string): z.ZodString =>
  z
    .string()
    .regex(/^[A-Z]{3}$/, 'must be an IATA code, three capital letters, like LHR')
    .describe(`IATA code of the airport or city to ${which}, three capital letters, for example LHR`)
const date = (of: string): z.ZodString =>
  z
    .string()
    .regex(/^\d{4}-\d{2}-\d{2}$/, 'must be a date like 2027-03-01')
    .describe(`${of}, YYYY-MM-DD`)

export const searchInput = z.strictObject({
  origin: airport('fly from'),
  destination: airport('fly to'),
  departure_date: date('Day of departure'),
  return_date: date('Day of the way back; leave it out for one way').optional(),
  adults: z.int().min(1).max(9).default(1).describe('Travellers aged 18 or more, 1–9'),
  cabin_class: z
    .enum(['economy', 'premium_economy', 'business', 'first'])
    .optional()
    .describe('Cabin to travel in; leave it out for any'),
  max_connections: z.int().min(0).max(2).default(2).describe('Most changes of plane on each way, 0–2'),
})
export type Search = z.output<typeof searchInput>

/** `now`: epoch milliseconds. Throws `invalid_arguments` with every problem at once. */
export function checkSearch(search: Search, now: number): void {
  const { origin, destination, departure_date, return_date } = search
  const problems: string[] = []
  const departure = dayOf(departure_date)
  const back = return_date === undefined ? undefined : dayOf(return_date)
  if (origin === destination) problems.push(`origin and destination are both ${origin}`)
  if (departure === undefined) problems.push(`departure_date ${departure_date} is not in the calendar`)
  else if (isOver(departure, now)) problems.push(`departure_date ${departure_date} is over; ${todayIs(now)}`)
  if (return_date !== undefined) {
    if (back === undefined) problems.push(`return_date ${return_date} is not in the calendar`)
    else if (departure !== undefined && back < departure)
      problems.push(`return_date ${return_date} is before departure_date ${departure_date}`)
  }
  if (problems.length > 0)
    throw new ToolFailure('invalid_arguments', `Nothing was searched: ${problems.join('; ')}.`)
}

function todayIs(now: number): string {
  return `today is ${new Date(now).toISOString().slice(0, 10)} (UTC)`
}
