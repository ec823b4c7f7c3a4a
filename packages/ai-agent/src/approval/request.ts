/** The permissions that a call needs: made by its tool from the arguments, judged by the engine. */
import type { ToolKind } from '@sandlot/shared/chat/call'

export type RuleRequest =
  /** A command line for bash. `cwd`: where it begins; absent: where the chat’s shell stands. */
  | { kind: 'shell'; command: string; cwd?: string | undefined }
  /** A file of the workspace, absolute or relative to it. */
  | {
      kind: 'file'
      access: 'read' | 'write'
      path: string
      /** And whatever is below it. */
      below?: true
      /** The target, where it is known: it is judged instead. */
      leadsTo?: ResolvedPath
    }
  /** A host on the network. */
  | { kind: 'host'; host: string; port?: number }

/** The target of a call's path, as the sandbox resolved it. */
export interface ResolvedPath {
  /** Relative to the workspace, without a symbolic link in it. */
  path: string
  /** A symbolic link led there, or the name is stored in another spelling. */
  linked: boolean
}

/** By the path as the tool asks for it. */
export type ResolvedPaths = ReadonlyMap<string, ResolvedPath>

export interface CallRequest {
  /** The tool's id. */
  tool: string
  /** The name in rules that allow, where that is not its id (`ToolRuns.as`). */
  ruleId?: string
  kind: ToolKind
  /** The tool says of itself that it changes nothing. */
  readOnly: boolean
  /** It changes only what its session was allowed before. */
  needsApproval?: false
  /** Empty: the tool itself is all there is to judge. */
  asks: readonly RuleRequest[]
}

/** The judged facts of a tool. */
interface JudgedTool extends Pick<CallRequest, 'kind' | 'readOnly'> {
  name: string
  runs?: { as?: { id: string; ruleId?: string }; needsApproval?: false }
  requests?(args: Record<string, unknown>): RuleRequest[]
}

/**
 * The request of a call; its arguments have been checked. `paths`: as far as they were resolved.
 */
export function callRequest(
  { tool, args }: { tool: JudgedTool; args: Record<string, unknown> },
  paths?: ResolvedPaths,
): CallRequest {
  const { name, kind, readOnly, runs } = tool
  const asks = (tool.requests?.(args) ?? []).map((ask) => {
    const leadsTo = ask.kind === 'file' ? paths?.get(ask.path) : undefined
    return leadsTo === undefined ? ask : { ...ask, leadsTo }
  })
  return {
    tool: runs?.as?.id ?? name,
    ruleId: runs?.as?.ruleId,
    kind,
    readOnly,
    needsApproval: runs?.needsApproval,
    asks,
  }
}
