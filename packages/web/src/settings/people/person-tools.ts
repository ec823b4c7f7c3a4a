/** `tools` of the settings: the agent's tools, and what people use themselves. Pure. */
import {
  ALL_TOOLS,
  type AgentSettings,
  type PersonTool,
  toolsByName,
} from '@sandlot/shared/account/agent-settings'

export type ToolSettings = NonNullable<AgentSettings['tools']>
type PersonTools = { [Id in PersonTool]?: boolean | undefined }

/** Splits `tools` into the agent's and those that people use themselves. */
export function splitTools(tools: ToolSettings | undefined): {
  agentTools: ToolSettings | undefined
  personTools: PersonTools
} {
  if (tools === undefined || typeof tools === 'boolean') return { agentTools: tools, personTools: {} }
  const { terminal, exec, ...others } = tools
  const personTools = { terminal, exec }
  const [only, more] = Object.keys(others)
  if (only === ALL_TOOLS && more === undefined) return { agentTools: others[ALL_TOOLS], personTools }
  const isSaid = only !== undefined || (terminal === undefined && exec === undefined)
  return { agentTools: isSaid ? others : undefined, personTools }
}

/** Both in one. */
export function withPersonTools(
  agentTools: ToolSettings | undefined,
  own: PersonTools,
): ToolSettings | undefined {
  const said = Object.entries(own).filter((entry): entry is [string, boolean] => entry[1] !== undefined)
  if (said.length === 0) return agentTools
  return { ...toolsByName(agentTools), ...Object.fromEntries(said) }
}
