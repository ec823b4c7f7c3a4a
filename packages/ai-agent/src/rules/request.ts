/** What a call asks to be judged: made by its tool from the arguments, read by the engine. */
import type { ToolKind } from '@sandlot/shared/events'

export type RuleRequest =
  /** A command line for bash. */
  | { kind: 'shell'; command: string }
  /** A file of the workspace, absolute or relative to it. */
  | { kind: 'file'; access: 'read' | 'write'; path: string }
  /** A host on the network. */
  | { kind: 'host'; host: string; port?: number }

export interface CallRequest {
  /** The tool's id. */
  tool: string
  kind: ToolKind
  /** The tool says of itself that it changes nothing. */
  readOnly: boolean
  /** Empty: the tool itself is all there is to judge. */
  asks: readonly RuleRequest[]
}
