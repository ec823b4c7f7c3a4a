/** Parses dates, and rejects those that are not in the calendar, like 30 February. */

const DAY_MS = 86_400_000

/** Milliseconds of midnight UTC of a `YYYY-MM-DD` that is in the calendar; else undefined. */
export function dayOf(text: string): number | undefined {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return undefined
  const at = Date.parse(`${text}T00:00:00Z`)
  return Number.isNaN(at) || new Date(at).toISOString().slice(0, 10) !== text ? undefined : at
}

/** True when the day is over in the last time zone, twelve hours after UTC. */
export function isOver(day: number, now: number): boolean {
  return day + DAY_MS + DAY_MS / 2 <= now
}

/**
 * Milliseconds of an ISO 8601 day, or day and time; UTC without an offset. Undefined if invalid.
 */
export function instantOf(text: string): number | undefined {
  const parts =
    /^(\d{4}-\d{2}-\d{2})(?:[Tt](\d{2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?)([Zz]|[+-]\d{2}(?::?\d{2})?)?)?$/.exec(
      text.trim(),
    )
  const [, date = '', time, zone = 'Z'] = parts ?? []
  const day = dayOf(date)
  if (day === undefined || time === undefined) return day
  const offset =
    zone.length === 3 ? `${zone}:00` : zone.length === 5 ? `${zone.slice(0, 3)}:${zone.slice(3)}` : zone
  const clock = time.replace(',', '.').replace(/(\.\d{3})\d+$/, '$1')
  const at = Date.parse(`${date}T${clock}${offset.toUpperCase()}`)
  return Number.isNaN(at) ? undefined : at
}
