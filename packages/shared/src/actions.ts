/** Every action of the HTTP API by its name. The page imports the type only, never the schemas. */
import { accountActions } from './account/actions.ts'
import { adminActions } from './admin/actions.ts'
import { chatActions } from './chat/actions.ts'
import { searchActions } from './search/actions.ts'
import type { AgentAct, AgentMethod } from './agent-requests.ts'
import type { Action, ToAgent } from './base/action.ts'
import { workspaceActions } from './workspace/actions.ts'

/** A method and an act that ai-agent has a handler for. */
type Answerable = {
  [M in AgentMethod]: ToAgent & { method: M; fields: { do?: AgentAct<M> } }
}[AgentMethod]

export const ACTIONS = {
  ...accountActions,
  ...chatActions,
  ...searchActions,
  ...workspaceActions,
  ...adminActions,
} satisfies Record<string, Action & { agent?: Answerable }>
export type Actions = typeof ACTIONS
export type ActionName = keyof Actions
