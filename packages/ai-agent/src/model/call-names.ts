/** The name of a call as models write it, for every reader of calls. */

/**
 * Without white space, and without the control tokens that templates of open models leave behind
 * it. Undefined: nothing is left.
 */
export function cleanName(name: string | undefined): string | undefined {
  const clean = name?.replace(/<\|.*$/s, '').trim()
  return clean === '' ? undefined : clean
}

/** Between a namespace and a name. */
const PARTS = /[.:/]+/
/** A template's count of its calls: `functions.x:0`. */
const COUNTED = /:\d+$/

export interface NamedTool {
  /** For the model. */
  name: string
  /** Set where it differs: `server::tool`. */
  id?: string
}

/**
 * The one that is meant: by its whole name, or behind a namespace (`functions.x`, `default_api.x`)
 * by the last part of its name, where only one has that. A namespace that is another server's means
 * none.
 */
export function toolNamed<T extends NamedTool>(name: string, tools: readonly T[]): T | undefined {
  const clean = cleanName(name) ?? ''
  const exact = tools.find((tool) => tool.name === clean || tool.id === clean)
  if (exact !== undefined) return exact
  const parts = clean.replace(COUNTED, '').split(PARTS)
  const last = parts.pop() ?? ''
  const found = tools.filter((tool) => lastPart(tool.name) === last || lastPart(tool.id) === last)
  const [only] = found
  if (only === undefined || found.length > 1) return undefined
  const server = serverOf(only)
  const elsewhere = tools.some((tool) => serverOf(tool) !== server && parts.includes(serverOf(tool)))
  return elsewhere ? undefined : only
}

function lastPart(name: string | undefined): string | undefined {
  return name?.split(PARTS).at(-1)
}

/** Empty: a tool of our own. */
function serverOf({ id = '' }: NamedTool): string {
  return id.includes('::') ? (id.split('::')[0] ?? '') : ''
}
