/** Handlers of the actions that the service answers itself. */
import { SandlotError } from '@sandlot/shared/base/errors'
import type { ActionName } from '@sandlot/shared/actions'
import type { MiddlewareHandler } from 'hono'
import { etag } from 'hono/etag'
import { accountsHandlers } from './http/account/accounts-routes.ts'
import { directoryHandlers } from './http/account/directory-routes.ts'
import { mcpHandlers } from './http/account/mcp-routes.ts'
import { notificationsHandlers } from './http/account/notifications-routes.ts'
import { ownDataHandlers } from './http/account/own-data-routes.ts'
import { resetHandlers } from './http/account/reset-routes.ts'
import { signInHandlers } from './http/account/sign-in-routes.ts'
import type { Handlers, Registration } from './http/actions.ts'
import { alertsHandlers } from './http/admin/alerts-routes.ts'
import { auditHandlers } from './http/admin/audit-routes.ts'
import { backupsHandlers } from './http/admin/backups-routes.ts'
import { invitationsHandlers } from './http/admin/invitations-routes.ts'
import { operationsHandlers } from './http/admin/operations-routes.ts'
import { overviewHandlers } from './http/admin/overview-routes.ts'
import { peopleHandlers } from './http/admin/people-routes.ts'
import { retentionHandlers } from './http/admin/retention-routes.ts'
import { personHandlers, teamsHandlers } from './http/admin/teams-routes.ts'
import { adminUsageHandlers, usageHandlers } from './http/admin/usage-routes.ts'
import { chatHandlers } from './http/chats/chat-routes.ts'
import { exportHandlers } from './http/chats/export-routes.ts'
import { imageLimit, imagesHandlers } from './http/chats/images-routes.ts'
import { projectsHandlers } from './http/chats/projects-routes.ts'
import { searchHandlers } from './search/search-routes.ts'
import { approvalsHandlers, sessionsHandlers } from './http/chats/sessions-routes.ts'
import { sharesHandlers } from './http/chats/shares-routes.ts'
import { snapshotsHandlers } from './http/chats/snapshots-routes.ts'
import type { AppEnv, Parts } from './http/context.ts'
import { execHandlers, execLimit } from './http/workspace/exec-routes.ts'
import { filesHandlers } from './http/workspace/files-routes.ts'
import { portsHandlers } from './http/workspace/ports-routes.ts'
import { workspaceHandlers } from './http/workspace/workspace-routes.ts'

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
