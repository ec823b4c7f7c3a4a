/** A signed-in person as the agent gets to know them. */
import type { AgentUser } from '@sandlot/shared/acp-meta'
import type { Account } from '@sandlot/shared/api'

export function agentUserOf({ id, name, email, role, teams }: Account): AgentUser {
  return { id, name, email, role, teams }
}
