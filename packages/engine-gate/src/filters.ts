import { z } from 'zod'

import { LABEL } from '@sandlot/sandbox/names'
import { parseCanonical } from './canonical-json.ts'
import { forbidden } from './refusal.ts'

const wanted = z.record(
  z.string(),
  z.union([z.array(z.string()).max(64), z.record(z.string(), z.literal(true))]),
)

/** Allowed filters of each list. All labels of a filter must match, so ours can always be added. */
const KNOWN = {
  list: ['label', 'status', 'id', 'name'],
  'volume-list': ['label', 'name'],
  events: ['label', 'type', 'event', 'container'],
} as const

/** Labels of all containers and volumes of a deployment. */
export function ownLabels(deployment: string): string[] {
  return [`${LABEL.deployment}=${deployment}`, `${LABEL.role}=sandbox`]
}

/**
 * The client's filter with our labels added. @throws Refusal for an unknown filter, and for another
 * deployment's label, which would silently match nothing.
 */
export function forcedFilters(
  operation: keyof typeof KNOWN,
  text: string | undefined,
  deployment: string,
): string {
  const parsed = wanted.safeParse(text === undefined ? {} : parseCanonical(text))
  if (!parsed.success) throw forbidden('the filters are not a map of lists')
  const forced: Record<string, string[]> = { label: [] }
  for (const [name, values] of Object.entries(parsed.data)) {
    if (!KNOWN[operation].some((known) => known === name))
      throw forbidden(`the filter ${name} is not allowed`)
    forced[name] = Array.isArray(values) ? values : Object.keys(values)
  }
  const own = ownLabels(deployment)
  const others = (forced['label'] ?? []).filter((label) => !own.includes(label))
  const stranger = others.find((label) => /^sandlot\.(deployment|role)(=|$)/.test(label))
  if (stranger !== undefined)
    throw forbidden(
      `this gate serves the deployment ${deployment}, not ${stranger}; is SANDLOT_DEPLOYMENT the same on both sides?`,
    )
  forced['label'] = [...others, ...own]
  return JSON.stringify(forced)
}
