/** Every action of the HTTP API by its name. The page imports the type only, never the schemas. */
import { accountActions } from './account/actions.ts'
import { adminActions } from './admin/actions.ts'
import { chatActions } from './chat/actions.ts'
import { searchActions } from './search/actions.ts'
import { workspaceActions } from './workspace/actions.ts'

export const ACTIONS = {
  ...accountActions,
  ...chatActions,
  ...searchActions,
  ...workspaceActions,
  ...adminActions,
}
export type Actions = typeof ACTIONS
export type ActionName = keyof Actions
