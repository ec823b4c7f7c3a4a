/** Handlers of the actions that the service answers itself. */
import { SandlotError } from '@sandlot/shared/base/errors'
import type { ActionName } from '@sandlot/shared/actions'
import type { MiddlewareHandler } from 'hono'
import { etag } from 'hono/etag'
import { accountsHandlers } from './account/accounts-routes.ts'
import { directoryHandlers } from './account/directory-routes.ts'
import { mcpHandlers } from './account/mcp-routes.ts'
import { notificationsHandlers } from './account/notifications-routes.ts'
import { ownDataHandlers } from './account/own-data-routes.ts'
import { resetHandlers } from './account/reset-routes.ts'
import { signInHandlers } from './account/sign-in-routes.ts'
import type { Handlers, Registration } from './actions.ts'
import { alertsHandlers } from './admin/alerts-routes.ts'
import { auditHandlers } from './admin/audit-routes.ts'
import { backupsHandlers } from './admin/backups-routes.ts'
import { invitationsHandlers } from './admin/invitations-routes.ts'
import { operationsHandlers } from './admin/operations-routes.ts'
import { overviewHandlers } from './admin/overview-routes.ts'
import { peopleHandlers } from './admin/people-routes.ts'
import { retentionHandlers } from './admin/retention-routes.ts'
import { personHandlers, teamsHandlers } from './admin/teams-routes.ts'
import { adminUsageHandlers, usageHandlers } from './admin/usage-routes.ts'
import { chatHandlers } from './chats/chat-routes.ts'
import { exportHandlers } from './chats/export-routes.ts'
import { imageLimit, imagesHandlers } from './chats/images-routes.ts'
import { projectsHandlers } from './chats/projects-routes.ts'
import { searchHandlers } from './chats/search-routes.ts'
import { approvalsHandlers, sessionsHandlers } from './chats/sessions-routes.ts'
import { sharesHandlers } from './chats/shares-routes.ts'
import { snapshotsHandlers } from './chats/snapshots-routes.ts'
import type { AppEnv, Parts } from './context.ts'
import { execHandlers, execLimit } from './workspace/exec-routes.ts'
import { filesHandlers } from './workspace/files-routes.ts'
import { portsHandlers } from './workspace/ports-routes.ts'
import { workspaceHandlers } from './workspace/workspace-routes.ts'

export function registrationOf(parts: Parts): Registration {
  return {
    handlers: {
      ...accountsHandlers(parts),
      ...directoryHandlers(parts),
      ...mcpHandlers(parts),
      ...notificationsHandlers(parts),
      ...ownDataHandlers(parts),
      ...resetHandlers(parts),
      ...signInHandlers(parts),
      ...alertsHandlers(parts),
      ...auditHandlers(parts),
      ...backupsHandlers(parts),
      ...invitationsHandlers(parts),
      ...operationsHandlers(parts),
      ...overviewHandlers(parts),
      ...peopleHandlers(parts),
      ...retentionHandlers(parts),
      ...personHandlers(parts),
      ...teamsHandlers(parts),
      ...adminUsageHandlers(parts),
      ...usageHandlers(parts),
      ...chatHandlers(parts),
      ...exportHandlers(parts),
      ...imagesHandlers(parts),
      ...projectsHandlers(parts),
      ...searchHandlers(parts),
      ...approvalsHandlers(parts),
      ...sessionsHandlers(parts),
      ...sharesHandlers(parts),
      ...snapshotsHandlers(parts),
      ...execHandlers(parts),
      ...filesHandlers(parts),
      ...portsHandlers(parts),
      ...workspaceHandlers(parts),
      attachTerminal: () => {
        throw new SandlotError('bad_request', 'This address takes WebSockets only.')
      },
    } satisfies Handlers,
    before: {
      uploadImage: imageLimit,
      runCommand: execLimit,
      getChatImage: etag(),
      getSnapshotImage: etag(),
    } satisfies Partial<Record<ActionName, MiddlewareHandler<AppEnv>>>,
  }
}
