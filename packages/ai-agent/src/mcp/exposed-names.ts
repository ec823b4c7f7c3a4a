/**
 * What the model calls the tools of servers: the tool's own name with every character that is not allowed as `_`. Where
 * two would have the same name, all of them take their server's name before it; a built-in tool never does.
 */
import { createHash } from 'node:crypto'

const MAX_CHARS = 64
const HASH_DIGITS = 8

export interface ServerTool {
  server: string
  /** As the server calls it. */
  tool: string
}

/** `server::tool` */
export function toolId({ server, tool }: ServerTool): string {
  return `${server}::${tool}`
}

/** The names by id. The same for the same tools, in whatever order they come; ids that are given twice count once. */
export function exposedNames(tools: readonly ServerTool[], taken: readonly string[]): Map<string, string> {
  const unique = new Map(tools.map((tool) => [toolId(tool), tool]))
  const own = new Map([...unique].map(([id, { tool }]) => [id, cut(legal(tool), tool)]))
  const prefixed = renameShared(own, taken, (id) => {
    const { server, tool } = unique.get(id) ?? { server: '', tool: id }
    return cut(`${legal(server)}_${legal(tool)}`, id)
  })
  // What still collides (`a_b::c` and `a::b_c`) is told apart by a hash.
  return renameShared(prefixed, taken, (id, name) => hashed(name, id))
}

function renameShared(
  names: ReadonlyMap<string, string>,
  taken: readonly string[],
  rename: (id: string, name: string) => string,
): Map<string, string> {
  const uses = new Map(taken.map((name) => [name, 1]))
  for (const name of names.values()) uses.set(name, (uses.get(name) ?? 0) + 1)
  return new Map([...names].map(([id, name]) => [id, uses.get(name) === 1 ? name : rename(id, name)]))
}

function legal(name: string): string {
  return name.replaceAll(/[^A-Za-z0-9_]/gu, '_')
}

/** `whole`: what the hash is of, when there is one. */
function cut(name: string, whole: string): string {
  return name.length <= MAX_CHARS ? name : hashed(name, whole)
}

function hashed(name: string, whole: string): string {
  const hash = createHash('sha256').update(whole).digest('hex').slice(0, HASH_DIGITS)
  return `${name.slice(0, MAX_CHARS - HASH_DIGITS - 1)}_${hash}`
}
