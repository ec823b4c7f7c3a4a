/** The permissions that a call needs: made by its tool from the arguments, judged by the engine. */
import type { ToolKind } from '@sandlot/shared/call'
import type { ToolCall } from '../tools/tool.ts'

export type RuleRequest =
  /** A command line for bash. */
  | { kind: 'shell'; command: string }
  /** A file of the workspace, absolute or relative to it. */
  | {
      kind: 'file'
      access: 'read' | 'write'
      path: string
      /** And whatever is below it. */
      below?: true
      /** Where it leads, where that is known: this is what is judged. */
      leadsTo?: ResolvedPath
    }
  /** A host on the network. */
  | { kind: 'host'; host: string; port?: number }

/** Where a path of a call leads, as the sandbox resolved it. */
export interface ResolvedPath {
  /** Relative to the workspace, without a symbolic link in it. */
  path: string
  /** A symbolic link led there. */
  linked: boolean
}

/** By the path as the tool asks for it. */
export type ResolvedPaths = ReadonlyMap<string, ResolvedPath>

export interface CallRequest {
  /** The tool's id. */
  tool: string
  /** What rules that allow call it, where that is not its id (`Tool.ruledAs`). */
  ruledAs?: string
  kind: ToolKind
  /** The tool says of itself that it changes nothing. */
  readOnly: boolean
  /** It changes only what its session was allowed before. */
  withoutLeave?: true
  /** Empty: the tool itself is all there is to judge. */
  asks: readonly RuleRequest[]
}

/** What a call asks; its arguments have been checked. `paths`: as far as they were resolved. */
export function callRequest(
  { tool, args }: Pick<ToolCall, 'tool' | 'args'>,
  paths?: ResolvedPaths,
): CallRequest {
  const { id, ruledAs, kind, readOnly, withoutLeave } = tool
  const asks = (tool.requests?.(args) ?? []).map((ask) => {
    const leadsTo = ask.kind === 'file' ? paths?.get(ask.path) : undefined
    return leadsTo === undefined ? ask : { ...ask, leadsTo }
  })
  return {
    tool: id,
    ruledAs,
    kind,
    readOnly,
    withoutLeave,
    asks,
  }
}
