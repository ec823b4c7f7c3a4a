/** The actor and address of a request, as a line of the audit log has them. */
import type { AgentUser } from '@sandlot/shared/account/agent-user'
import type { NewAudit } from '@sandlot/shared/admin/audit'

export function actorOf({ id, name, email, from }: AgentUser): Pick<NewAudit, 'who' | 'from'> {
  return { who: { id, name: name ?? email ?? id, email }, from }
}
