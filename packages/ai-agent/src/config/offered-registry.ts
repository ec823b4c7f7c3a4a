/** A user's registry of tools, made from the one of all tools by what operator and administrator have set. */
import { type ToolRegistry, createRegistry } from '../tools/registry.ts'
import { type OfferSettings, hasAnyTools, hasOwnTools, offeredTools } from './tool-offer.ts'

/** `sessionId`: with the tools of the servers that this session brought. */
export type ToolsOf = (userId: string, signal: AbortSignal, sessionId?: string) => Promise<ToolRegistry>

/** `all`: every tool there is for a user. It is not even asked for users who have none. */
export function offeredToolsOf(all: ToolsOf, settings: OfferSettings): ToolsOf {
  const nothing = createRegistry()
  /** What everybody has of a registry, which is the same object as long as nothing about it changes. */
  const everybodys = new WeakMap<ToolRegistry, Map<string, ToolRegistry>>()
  const untouched =
    settings.toolsEnabled && settings.builtinTools === 'all' && Object.keys(settings.tools ?? {}).length === 0

  const offer = (userId: string, from: ToolRegistry): ToolRegistry => {
    const registry = createRegistry()
    registry.register(...offeredTools(userId, from.listTools(), settings))
    return registry
  }
  return async (userId, signal, sessionId) => {
    if (!hasAnyTools(userId, settings)) return nothing
    const from = await all(userId, signal, sessionId)
    if (hasOwnTools(userId, settings)) return offer(userId, from)
    const withheld = withheldFrom(userId, from)
    if (untouched && withheld === '') return from
    const known = everybodys.get(from) ?? new Map<string, ToolRegistry>()
    everybodys.set(from, known)
    const made = known.get(withheld) ?? offer(userId, from)
    known.set(withheld, made)
    return made
  }
}

/** The tools that say of themselves that they are not for this user, as one text. */
function withheldFrom(userId: string, registry: ToolRegistry): string {
  const tools = registry.listTools().filter(({ offeredTo }) => offeredTo?.(userId) === false)
  return tools.map(({ id }) => id).join(' ')
}
