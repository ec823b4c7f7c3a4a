/** What a call asks to be judged: made by its tool from the arguments, read by the engine. */
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
    }
  /** A host on the network. */
  | { kind: 'host'; host: string; port?: number }

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

/** What a call asks; its arguments have been checked. */
export function callRequest({ tool, args }: Pick<ToolCall, 'tool' | 'args'>): CallRequest {
  const { id, ruledAs, kind, readOnly, withoutLeave } = tool
  const asks = tool.requests?.(args) ?? []
  return {
    tool: id,
    ...(ruledAs === undefined ? {} : { ruledAs }),
    kind,
    readOnly,
    ...(withoutLeave === undefined ? {} : { withoutLeave }),
    asks,
  }
}
