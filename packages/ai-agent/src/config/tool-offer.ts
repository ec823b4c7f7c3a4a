/**
 * Which tools a user has: all there are, less what the operator and the administrator have taken
 * away.
 */
import { nearest } from '@sandlot/shared/config/names'
import { makeSandlotEvent, sandlotEventOf, type SessionEvent } from '@sandlot/shared/chat/events'
import { type Tool, type ToolRuns, idOf } from '../tools/tool.ts'
import {
  type AgentSettings,
  ALL_TOOLS,
  type PersonTool,
  toolsByName,
} from '@sandlot/shared/account/agent-settings'
import type { PersonalSettings } from '../people/settings-registry.ts'
import { z } from 'zod'
import { type ToolRegistry, createRegistry } from '../tools/registry.ts'

// The section `tools` of the configuration file: what an operator changes about single tools.

const toolSettings = z.strictObject({
  /** False: no user is offered it. */
  enabled: z.boolean().optional(),
  timeoutMs: z.int().min(1000).max(300_000).optional(),
  /** So many calls of one user in so many milliseconds. */
  rateLimit: z.strictObject({ calls: z.int().min(1), perMs: z.int().min(1) }).optional(),
  /** Milliseconds for which a result may be returned again, for tools that allow it; 0: never. */
  cacheTtlMs: z.int().min(0).optional(),
  /** Calls that run at once, of everybody together. */
  concurrency: z.int().min(1).max(1000).optional(),
})

/** By tool id: `run_shell_command`, `server::tool`; `*`: every built-in tool that is not named. */
export const toolsSection = z
  .record(z.string().min(1).max(256), toolSettings)
  .refine(
    ({ [ALL_TOOLS]: all = {} }) => Object.keys(all).every((name) => name === 'enabled'),
    'for "*" only "enabled" can be set; set the rest for single tools',
  )
type ToolsSection = z.output<typeof toolsSection>

/** The tool as the operator wants it. */
function configuredTool(tool: Tool, section: ToolsSection): Tool {
  const id = idOf(tool)
  const settings = Object.hasOwn(section, id) ? section[id] : undefined
  if (settings === undefined) return tool
  const { timeoutMs, rateLimit, cacheTtlMs, concurrency } = settings
  const { runs = {} } = tool
  const changed: ToolRuns = {
    ...runs,
    timeoutMs: timeoutMs ?? runs.timeoutMs,
    rateLimit: rateLimit ?? runs.rateLimit,
    concurrency: concurrency ?? runs.concurrency,
  }
  // Only for a tool that caches by itself: whether results may change between two calls is not
  // configurable.
  if (runs.cache !== undefined && cacheTtlMs !== undefined)
    changed.cache = cacheTtlMs === 0 ? undefined : { ...runs.cache, ttlMs: cacheTtlMs }
  return { ...tool, runs: changed }
}

interface OfferSettings {
  /** `SANDLOT_TOOLS_ENABLED`. */
  toolsEnabled: boolean
  tools?: ToolsSection | undefined
  /** Administrators' settings for single people. */
  personal?: PersonalSettings | undefined
}

/**
 * The tools among `tools` that this user is offered, as the operator has configured them. An
 * administrator's word for the user is the last.
 */
export function offeredTools(userId: string, tools: readonly Tool[], settings: OfferSettings): Tool[] {
  const { tools: section = {}, personal } = settings
  if (!hasAnyTools(userId, settings)) return []
  const { withheldServers } = personal?.of(userId) ?? {}

  const offered = (tool: Tool): boolean => {
    if (tool.runs?.offeredTo?.(userId) === false) return false
    if (withheldServers?.has(serverOf(tool)) === true) return false
    return isAllowed(userId, idOf(tool), settings)
  }
  return tools.filter(offered).map((tool) => configuredTool(tool, section))
}

/** True if a person may use a tool that is not the agent's: as if it were a tool of this id. */
export function mayUse(userId: string, id: PersonTool, settings: OfferSettings): boolean {
  return isAllowed(userId, id, settings)
}

/** An administrator's word for the user, else what holds for everybody. */
function isAllowed(
  userId: string,
  id: string,
  { toolsEnabled, tools: section = {}, personal }: OfferSettings,
): boolean {
  const own = personal?.of(userId).tools
  const byDefault = id.includes('::') || section[ALL_TOOLS]?.enabled !== false
  const enabled = Object.hasOwn(section, id) ? (section[id]?.enabled ?? byDefault) : byDefault
  // A user for whom tools were switched on gets the default ones.
  return own?.single.get(id) ?? (enabled && (own?.all ?? toolsEnabled))
}

/** False for a user who has no tools, whichever there are. */
export function hasAnyTools(userId: string, { toolsEnabled, personal }: OfferSettings): boolean {
  const own = personal?.of(userId).tools
  return (own?.all ?? toolsEnabled) || [...(own?.single.values() ?? [])].includes(true)
}

/** True if these settings of a person or a team switch any tool on. */
export function givesTools(tools: AgentSettings['tools']): boolean {
  return Object.values(toolsByName(tools)).includes(true)
}

/** True when this user's tools differ from the default. */
function hasOwnTools(userId: string, { personal }: OfferSettings): boolean {
  const { tools, withheldServers } = personal?.of(userId) ?? {}
  return tools !== undefined || withheldServers !== undefined
}

/** Empty: it is a built-in one. */
function serverOf(tool: Tool): string {
  const [server = '', name] = idOf(tool).split('::')
  return name === undefined ? '' : server
}

/**
 * A sentence for each built-in tool that the sections name and that there is not. `people`: by
 * where it stands in the file. `known`: the ids of those there are.
 */
export function unknownToolProblems(
  tools: ToolsSection | undefined,
  people: Readonly<Record<string, Pick<AgentSettings, 'tools'>>>,
  known: readonly string[],
): string[] {
  const named = [
    ...Object.keys(tools ?? {}).map((id) => ['tools', id] as const),
    ...Object.entries(people).flatMap(([place, { tools: own }]) =>
      Object.keys(toolsByName(own)).map((id) => [`${place}.tools`, id] as const),
    ),
  ]
  // A server's tools are not known before it is asked.
  const unknown = named.filter(([, id]) => !id.includes('::') && id !== ALL_TOOLS && !known.includes(id))
  return unknown.map(([place, id]) => {
    const meant = nearest(id, known)
    return `${place}: there is no tool ${id}${meant === undefined ? '' : `; did you mean ${meant}?`}`
  })
}

// ── As many as a request may have ──────────────────────────────────────────────────────────────

/** OpenAI refuses a request with more. */
const MOST_IN_REQUEST = 128

/** Our own tools first, then those of servers by their ids: the same ones each time. */
function withinRequest(all: ToolRegistry): ToolRegistry {
  const order = (tool: Tool): string => `${serverOf(tool) === '' ? 0 : 1} ${idOf(tool)}`
  const sorted = all.listTools().toSorted((a, b) => (order(a) < order(b) ? -1 : 1))
  if (sorted.length <= MOST_IN_REQUEST) return all
  const registry = createRegistry()
  registry.register(...sorted.slice(0, MOST_IN_REQUEST))
  const leftOut = new Set(sorted.slice(MOST_IN_REQUEST).map(serverOf))
  return { ...registry, leftOut: [...leftOut] }
}

/** The note that names the servers; undefined where the last one in the log says the same. */
export function leftOutNote(
  log: readonly SessionEvent[],
  { leftOut = [] }: Pick<ToolRegistry, 'leftOut'>,
  promptId: string,
  at: number,
): SessionEvent | undefined {
  if (leftOut.length === 0) return undefined
  const last = log.map(sandlotEventOf).findLast((event) => event?.type === 'tools_left_out')
  if (last?.type === 'tools_left_out' && last.servers.join() === leftOut.join()) return undefined
  return makeSandlotEvent({ type: 'tools_left_out', servers: [...leftOut] }, { promptId }, at)
}

// ── The registry of one person ──────────────────────────────────────────────────────────────────

/** `sessionId`: with the tools of the servers that this session brought. */
type ToolsOf = (userId: string, signal: AbortSignal, sessionId?: string) => Promise<ToolRegistry>

/** `all`: every tool there is for a user. It is not even asked for users who have none. */
export function offeredToolsOf(all: ToolsOf, settings: OfferSettings): ToolsOf {
  const nothing = createRegistry()
  /** Everybody's tools of a registry; the same object as long as nothing about it changes. */
  const everybodys = new WeakMap<ToolRegistry, Map<string, ToolRegistry>>()
  const untouched = settings.toolsEnabled && Object.keys(settings.tools ?? {}).length === 0

  const offer = (userId: string, from: ToolRegistry): ToolRegistry => {
    const registry = createRegistry()
    registry.register(...offeredTools(userId, from.listTools(), settings))
    return registry
  }
  const fitting = new WeakMap<ToolRegistry, ToolRegistry>()
  const cut = (registry: ToolRegistry): ToolRegistry => {
    const known = fitting.get(registry) ?? withinRequest(registry)
    fitting.set(registry, known)
    return known
  }
  const offerOf: ToolsOf = async (userId, signal, sessionId) => {
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
  return async (...asked) => cut(await offerOf(...asked))
}

/** The tools that say of themselves that they are not for this user, as one text. */
function withheldFrom(userId: string, registry: ToolRegistry): string {
  const tools = registry.listTools().filter(({ runs }) => runs?.offeredTo?.(userId) === false)
  return tools.map(idOf).join(' ')
}
