/** Which tools a user has: all there are, less what the operator and the administrator have taken away. */
import { nearest } from '@sandlot/shared/config-names'
import type { Tool } from '../tools/tool.ts'
import { type ToolsSection, configuredTool } from './tool-settings.ts'
import type { PersonalSettings, UserSettings } from './user-settings.ts'

export interface OfferSettings {
  /** `SANDLOT_TOOLS_ENABLED`. */
  toolsEnabled: boolean
  /** `SANDLOT_BUILTIN_TOOLS`, by name. */
  builtinTools: readonly string[] | 'all'
  tools?: ToolsSection | undefined
  /** What an administrator has set for single people. */
  personal?: PersonalSettings | undefined
}

/** The tools among `tools` that this user is offered, as the operator has configured them. An administrator's word for the user is the last. */
export function offeredTools(userId: string, tools: readonly Tool[], settings: OfferSettings): Tool[] {
  const { toolsEnabled, builtinTools, tools: section = {}, personal } = settings
  if (!hasAnyTools(userId, settings)) return []
  const own = personal?.of(userId).tools

  const forEverybody = ({ id, name }: Tool): boolean => {
    const listed = id.includes('::') || builtinTools === 'all' || builtinTools.includes(name)
    const enabled = Object.hasOwn(section, id) ? (section[id]?.enabled ?? listed) : listed
    // Somebody for whom tools were switched on has the ones that everybody would have.
    return enabled && (own?.all ?? toolsEnabled)
  }
  const offered = (tool: Tool): boolean => {
    if (tool.offeredTo?.(userId) === false) return false
    return own?.single.get(tool.id) ?? forEverybody(tool)
  }
  return tools.filter(offered).map((tool) => configuredTool(tool, section))
}

/** False for a user who has no tools, whichever there are. */
export function hasAnyTools(userId: string, { toolsEnabled, personal }: OfferSettings): boolean {
  const own = personal?.of(userId).tools
  return (own?.all ?? toolsEnabled) || [...(own?.single.values() ?? [])].includes(true)
}

/** Whether this user is offered something else than everybody. */
export function hasOwnTools(userId: string, { personal }: OfferSettings): boolean {
  return personal?.of(userId).tools !== undefined
}

/** Whether anybody is offered any tool. */
export function offersAnything({ toolsEnabled, personal }: OfferSettings): boolean {
  return toolsEnabled || (personal?.all ?? []).some(({ tools }) => tools !== undefined)
}

/**
 * A sentence for each built-in tool that the sections name and that there is not. `people`: by where it stands in the file.
 * `known`: the ids of those there are.
 */
export function unknownToolProblems(
  tools: ToolsSection | undefined,
  people: Readonly<Record<string, UserSettings>>,
  known: readonly string[],
): string[] {
  const named = [
    ...Object.keys(tools ?? {}).map((id) => ['tools', id] as const),
    ...Object.entries(people).flatMap(([place, { tools: own }]) =>
      typeof own === 'object' ? Object.keys(own).map((id) => [`${place}.tools`, id] as const) : [],
    ),
  ]
  // What a server offers is not known before it is asked.
  const unknown = named.filter(([, id]) => !id.includes('::') && !known.includes(id))
  return unknown.map(([place, id]) => {
    const meant = nearest(id, known)
    return `${place}: there is no tool ${id}${meant === undefined ? '' : `; did you mean ${meant}?`}`
  })
}
