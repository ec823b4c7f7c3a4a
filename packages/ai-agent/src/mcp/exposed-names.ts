/**
 * The names of servers' tools for the model: the tool's own name, with `_` for each character that
 * is not allowed. Tools with the same name are prefixed with their server's name; a built-in tool
 * never is.
 */
import { createHash } from 'node:crypto'

const MAX_CHARS = 64
const HASH_DIGITS = 8

export interface ServerTool {
  server: string
  /** The server's own name for it. */
  tool: string
}

/** `server::tool` */
export function toolId({ server, tool }: ServerTool): string {
  return `${server}::${tool}`
}

/** The names by id, independent of the order of the tools; duplicate ids count once. */
export function exposedNames(tools: readonly ServerTool[], taken: readonly string[]): Map<string, string> {
  const unique = new Map(tools.map((tool) => [toolId(tool), tool]))
  const own = new Map([...unique].map(([id, { tool }]) => [id, cut(legal(tool), tool)]))
  const prefixed = renameShared(own, taken, (id) => {
    const { server, tool } = unique.get(id) ?? { server: '', tool: id }
    return cut(`${legal(server)}_${legal(tool)}`, id)
  })
  // Names that still collide (`a_b::c` and `a::b_c`) get a hash.
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

/** `whole`: the text to hash when the name is too long. */
function cut(name: string, whole: string): string {
  return name.length <= MAX_CHARS ? name : hashed(name, whole)
}

function hashed(name: string, whole: string): string {
  const hash = createHash('sha256').update(whole).digest('hex').slice(0, HASH_DIGITS)
  return `${name.slice(0, MAX_CHARS - HASH_DIGITS - 1)}_${hash}`
}
