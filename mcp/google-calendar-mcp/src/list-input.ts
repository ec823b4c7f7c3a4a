/** Arguments of a listing: the schema for the model, and further checks. */
import { instantOf } from '@sandlot/mcp-kit/dates'
import { ToolFailure } from '@sandlot/mcp-kit/tool-failure'
import { z } from 'zod'

const MAX_EVENTS = 2_500

const time = (what: string): z.ZodOptional<z.ZodString> =>
  z
    .string()
    .max(40)
    .describe(
      `${what}; ISO 8601, for example 2027-03-01T09:00:00+01:00. Without an offset it is UTC, a day alone is its midnight.`,
    )
    .optional()

export const listInput = z.strictObject({
  calendarId: z
    .string()
    .min(1)
    .max(300)
    .default('primary')
    .describe('Which calendar: primary, or the id of another'),
  timeMin: time('Only events that end after this'),
  timeMax: time('Only events that begin before this'),
  maxResults: z.int().min(1).max(MAX_EVENTS).default(25).describe(`Most events to list, 1–${MAX_EVENTS}`),
  singleEvents: z
    .boolean()
    .default(false)
    .describe('true: each occurrence of a recurring event, in order of time; false: a recurring event once'),
})

/** Parameters of the request to Google, with times in UTC. */
export interface Listing {
  calendarId: string
  timeMin?: string
  timeMax?: string
  maxResults: number
  singleEvents: boolean
}

/** Throws `invalid_arguments` with every problem at once. */
export function listingOf(input: z.output<typeof listInput>): Listing {
  const { timeMin, timeMax, ...rest } = input
  const problems: string[] = []
  const instant = (name: string, text: string | undefined): number | undefined => {
    if (text === undefined) return undefined
    const at = instantOf(text)
    if (at === undefined) problems.push(`${name} ${text} is not a time in ISO 8601, or not in the calendar`)
    return at
  }
  const from = instant('timeMin', timeMin)
  const to = instant('timeMax', timeMax)
  if (from !== undefined && to !== undefined && to <= from) problems.push('timeMax must be after timeMin')
  if (problems.length > 0)
    throw new ToolFailure('invalid_arguments', `Nothing was listed: ${problems.join('; ')}.`)
  return {
    ...rest,
    timeMin: from === undefined ? undefined : new Date(from).toISOString(),
    timeMax: to === undefined ? undefined : new Date(to).toISOString(),
  }
}
