/** A user's registry of tools, made from the one of all tools by what operator and administrator have set. */
import { type ToolRegistry, createRegistry } from '../tools/registry.ts'
import { type OfferSettings, hasAnyTools, hasOwnTools, offeredTools } from './tool-offer.ts'

/** `sessionId`: with the tools of the servers that this session brought. */
export type ToolsOf = (userId: string, signal: AbortSignal, sessionId?: string) => Promise<ToolRegistry>

/** `all`: every tool there is for a user. It is not even asked for users who have none. */
export function offeredToolsOf(all: ToolsOf, settings: OfferSettings): ToolsOf {
  const nothing = createRegistry()
  /** What everybody has of a registry, which is the same object as long as nothing about it changes. */
  const everybodys = new WeakMap<ToolRegistry, ToolRegistry>()
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
    if (hasOwnTools(userId, settings.users)) return offer(userId, from)
    if (untouched) return from
    const known = everybodys.get(from)
    if (known !== undefined) return known
    const made = offer(userId, from)
    everybodys.set(from, made)
    return made
  }
}
