/** Which tools a user has: all there are, less what the operator and the administrator have taken away. */
import { nearest } from '@sandlot/shared/config-names'
import type { Tool } from '../tools/tool.ts'
import { type ToolsSection, configuredTool } from './tool-settings.ts'
import type { UsersSection } from './user-settings.ts'

export interface OfferSettings {
  /** `SANDLOT_TOOLS_ENABLED`. */
  toolsEnabled: boolean
  /** `SANDLOT_BUILTIN_TOOLS`, by name. */
  builtinTools: readonly string[] | 'all'
  tools?: ToolsSection | undefined
  users?: UsersSection | undefined
}

/** The tools among `tools` that this user is offered, as the operator has configured them. An administrator's word for the user is the last. */
export function offeredTools(userId: string, tools: readonly Tool[], settings: OfferSettings): Tool[] {
  const { toolsEnabled, builtinTools, tools: section = {}, users = {} } = settings
  if (!hasAnyTools(userId, settings)) return []
  const own = ownTools(userId, users)

  const forEverybody = ({ id, name }: Tool): boolean => {
    const listed = id.includes('::') || builtinTools === 'all' || builtinTools.includes(name)
    const enabled = Object.hasOwn(section, id) ? (section[id]?.enabled ?? listed) : listed
    // Somebody for whom tools were switched on has the ones that everybody would have.
    return enabled && (toolsEnabled || own === true)
  }
  const offered = (tool: Tool): boolean => {
    const said = typeof own === 'object' && Object.hasOwn(own, tool.id) ? own[tool.id] : undefined
    return said ?? forEverybody(tool)
  }
  return tools.filter(offered).map((tool) => configuredTool(tool, section))
}

function ownTools(userId: string, users: UsersSection): boolean | Record<string, boolean> | undefined {
  return Object.hasOwn(users, userId) ? users[userId]?.tools : undefined
}

/** False for a user who has no tools, whichever there are. */
export function hasAnyTools(userId: string, { toolsEnabled, users = {} }: OfferSettings): boolean {
  const own = ownTools(userId, users)
  return typeof own === 'boolean' ? own : toolsEnabled || own !== undefined
}

/** Whether this user is offered something else than everybody. */
export function hasOwnTools(userId: string, users: UsersSection = {}): boolean {
  return ownTools(userId, users) !== undefined
}

/** Whether anybody is offered any tool. */
export function offersAnything({ toolsEnabled, users = {} }: OfferSettings): boolean {
  return toolsEnabled || Object.keys(users).some((userId) => ownTools(userId, users) !== undefined)
}

/** A sentence for each built-in tool that the sections name and that there is not. `known`: the ids of those there are. */
export function unknownToolProblems(
  tools: ToolsSection | undefined,
  users: UsersSection | undefined,
  known: readonly string[],
): string[] {
  const named = [
    ...Object.keys(tools ?? {}).map((id) => ['tools', id] as const),
    ...Object.entries(users ?? {}).flatMap(([userId, { tools: own }]) =>
      typeof own === 'object' ? Object.keys(own).map((id) => [`users.${userId}.tools`, id] as const) : [],
    ),
  ]
  // What a server offers is not known before it is asked.
  const unknown = named.filter(([, id]) => !id.includes('::') && !known.includes(id))
  return unknown.map(([place, id]) => {
    const meant = nearest(id, known)
    return `${place}: there is no tool ${id}${meant === undefined ? '' : `; did you mean ${meant}?`}`
  })
}
