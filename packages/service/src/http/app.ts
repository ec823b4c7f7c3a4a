/** The HTTP app: what holds for every answer, then the routes. */
import { SandlotError, toErrorBody } from '@sandlot/shared/base/errors'
import { MAX_FRAME_BYTES } from '@sandlot/shared/chat/frames'
import { newId } from '@sandlot/shared/base/ids'
import { PAGE_HEADERS } from '@sandlot/shared/workspace/files'
import { Hono } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import { createMiddleware } from 'hono/factory'
import { matchedRoutes } from 'hono/route'
import { secureHeaders } from 'hono/secure-headers'
import { accountsRoutes } from './account/accounts-routes.ts'
import { chatRoutes } from './chats/chat-routes.ts'
import type { ServiceConfig } from '../config.ts'
import type { AppEnv, Ctx, Parts } from './context.ts'
import { directoryRoutes } from './account/directory-routes.ts'
import { execRoutes } from './workspace/exec-routes.ts'
import { filesRoutes } from './workspace/files-routes.ts'
import { sessionImageRoutes, uploadRoutes } from './chats/images-routes.ts'
import { healthRoutes } from './health-routes.ts'
import { instructionsRoutes } from './account/instructions-routes.ts'
import { invitationsRoutes } from './admin/invitations-routes.ts'
import { ownDataRoutes } from './account/own-data-routes.ts'
import { resetRoutes } from './account/reset-routes.ts'
import { mcpRoutes } from './account/mcp-routes.ts'
import { alertsRoutes } from './admin/alerts-routes.ts'
import { auditRoutes } from './admin/audit-routes.ts'
import { backupsRoutes } from './admin/backups-routes.ts'
import { overviewRoutes } from './admin/overview-routes.ts'
import { mcpServersRoutes } from './account/mcp-servers-routes.ts'
import { modelsRoutes } from './admin/models-routes.ts'
import { notificationsRoutes } from './account/notifications-routes.ts'
import { portsRoutes } from './workspace/ports-routes.ts'
import { operationsRoutes } from './admin/operations-routes.ts'
import { peopleRoutes } from './admin/people-routes.ts'
import { exportRoutes } from './chats/export-routes.ts'
import { projectsRoutes } from './chats/projects-routes.ts'
import { addressIn } from '../auth/address.ts'
import { textAddressesOnly } from './request.ts'
import { rulesRoutes } from './account/rules-routes.ts'
import { searchRoutes } from './chats/search-routes.ts'
import { sandboxRoutes } from './workspace/sandbox-routes.ts'
import { secretsRoutes } from './account/secrets-routes.ts'
import { approvalsRoutes, sessionsRoutes } from './chats/sessions-routes.ts'
import { sharesRoutes } from './chats/shares-routes.ts'
import { snapshotsRoutes } from './chats/snapshots-routes.ts'
import { signInRoutes } from './account/sign-in-routes.ts'
import { terminalsRoutes } from './workspace/terminals-routes.ts'
import { retentionRoutes } from './admin/retention-routes.ts'
import { ownSettingsRoutes, personRoutes, teamsRoutes } from './admin/teams-routes.ts'
import { adminUsageRoutes, usageRoutes } from './admin/usage-routes.ts'
import { webApp } from './web-app.ts'
import { workspaceRoutes } from './workspace/workspace-routes.ts'

export function makeApp(parts: Parts): Hono<AppEnv> {
  const { config } = parts
  const app = new Hono<AppEnv>()
    .use(numbered(parts))
    .use('/api/files/preview', framed())
    .use('/api/sessions/:id/outputs/*', sandboxed())
    .use('/api/sessions/:id/export', sandboxed())
    .use('/api/sessions/:id/images/*', sandboxed())
    .use('/api/snapshots/:id/outputs/*', sandboxed())
    .use('/api/snapshots/:id/images/*', sandboxed())
    .use('/api/images/*', sandboxed())
    .use('/api/files/*', sandboxed())
    .use(pageHeaders(config))
    .use('/api/*', neverCached())
    .use(textAddressesOnly)
    // Before the limit of everything else, because they have their own.
    .route('/api/images', uploadRoutes(parts))
    .route('/api/files', filesRoutes(parts))
    .route('/api/files', workspaceRoutes(parts))
    .route('/api/exec', execRoutes(parts))
    .use(
      bodyLimit({
        maxSize: MAX_FRAME_BYTES,
        onError: () => {
          throw new SandlotError('too_large', `A request has at most ${MAX_FRAME_BYTES} bytes.`)
        },
      }),
    )
  addAccountRoutes(app, parts)
  addChatRoutes(app, parts)
  app
    .get('/ws', () => {
      throw new SandlotError('bad_request', 'This address takes WebSockets only.')
    })
    .all('/api/*', () => {
      throw new SandlotError('not_found', 'There is no such route.')
    })
    .route('/', webApp(config.webDist))

  app.notFound((c) => answerError(c, parts, new SandlotError('not_found', 'There is nothing here.')))
  app.onError((error, c) => answerError(c, parts, error))
  return app
}

function pageHeaders(config: ServiceConfig) {
  return secureHeaders({
    contentSecurityPolicy: {
      defaultSrc: ["'self'"],
      scriptSrc: ["'self'", "'wasm-unsafe-eval'"],
      styleSrc: ["'self'", "'unsafe-inline'"],
      imgSrc: ["'self'", 'data:', 'blob:'],
      fontSrc: ["'self'", 'data:'],
      connectSrc: ["'self'"],
      workerSrc: ["'self'", 'blob:'],
      objectSrc: ["'none'"],
      baseUri: ["'none'"],
      formAction: ["'self'"],
      // A frame's own steps are bound by this too: a page of the workspace leads nowhere else.
      frameSrc: ["'self'"],
      frameAncestors: ["'none'"],
    },
    xFrameOptions: 'DENY',
    referrerPolicy: 'no-referrer',
    strictTransportSecurity: config.publicUrl?.startsWith('https:') === true,
  })
}

/** Accounts, and what administrators see and set. */
function addAccountRoutes(app: Hono<AppEnv>, parts: Parts): void {
  app
    .route('/', healthRoutes(parts))
    .route('/api', accountsRoutes(parts))
    .route('/api', signInRoutes(parts))
    .route('/api', ownDataRoutes(parts))
    .route('/api/users', peopleRoutes(parts))
    .route('/api/users', personRoutes(parts))
    .route('/api/teams', teamsRoutes(parts))
    .route('/api/models', modelsRoutes(parts))
    .route('/api/admin/alerts', alertsRoutes(parts))
    .route('/api/admin/audit', auditRoutes(parts))
    .route('/api/admin/backups', backupsRoutes(parts))
    .route('/api/admin/retention', retentionRoutes(parts))
    .route('/api/admin/overview', overviewRoutes(parts))
    .route('/api/mcp-servers', mcpServersRoutes(parts, 'own'))
    .route('/api/admin/mcp-servers', mcpServersRoutes(parts, 'deployment'))
    .route('/api/me', ownSettingsRoutes(parts))
    .route('/api/usage', usageRoutes(parts))
    .route('/api/admin/usage', adminUsageRoutes(parts))
    .route('/api/admin', operationsRoutes(parts))
}

/** Chats and workspaces, and what belongs to a person. */
function addChatRoutes(app: Hono<AppEnv>, parts: Parts): void {
  app
    .route('/api/invitations', invitationsRoutes(parts))
    .route('/api/reset', resetRoutes(parts))
    .route('/api', chatRoutes(parts))
    .route('/api/sessions', sessionsRoutes(parts))
    .route('/api/sessions', sessionImageRoutes(parts))
    .route('/api/sessions', sharesRoutes(parts))
    .route('/api/approvals', approvalsRoutes(parts))
    .route('/api/sessions', exportRoutes(parts))
    .route('/api/snapshots', snapshotsRoutes(parts))
    .route('/api/people', directoryRoutes(parts))
    .route('/api/search', searchRoutes(parts))
    .route('/api/projects', projectsRoutes(parts))
    .route('/api/rules', rulesRoutes(parts))
    .route('/api/secrets', secretsRoutes(parts))
    .route('/api/notices', notificationsRoutes(parts))
    .route('/api/instructions', instructionsRoutes(parts))
    .route('/api/terminals', terminalsRoutes(parts))
    .route('/api/ports', portsRoutes(parts))
    .route('/api/sandbox', sandboxRoutes(parts))
    .route('/oauth/mcp', mcpRoutes(parts))
}

/** Every answer carries the id under which the log has it. */
function numbered({ config, log, metrics }: Parts) {
  return createMiddleware<AppEnv>(async function requestIsNumbered(c, next) {
    const requestId = newId('r')
    c.set('requestId', requestId)
    c.set('address', addressIn(c.env.incoming, config.trustedProxies))
    c.header('x-request-id', requestId)
    const began = performance.now()
    await next()
    const seconds = (performance.now() - began) / 1000
    const { status } = c.res
    // The pattern, not the address: ids would make a time series each.
    const route = matchedRoutes(c).findLast(({ path }) => !path.includes('*'))?.path ?? '*'
    metrics.httpRequest(route, c.req.method, status, seconds)
    // 503 is an answer that probes get by the second while something is away.
    const level = status >= 500 && status !== 503 ? 'warn' : 'debug'
    log[level](
      { requestId, method: c.req.method, path: c.req.path, status, ms: Math.round(seconds * 1000) },
      'answered',
    )
  })
}

/**
 * Output of a command is never a page of this origin. Outermost, because it replaces the app's own
 * policy.
 */
function sandboxed() {
  return createMiddleware<AppEnv>(async function outputIsSandboxed(c, next) {
    await next()
    c.res.headers.set('content-security-policy', "default-src 'none'; sandbox")
  })
}

/**
 * A page of the workspace runs in an origin of its own, with no network and no other document.
 * Outermost, because it replaces both the app's own policy and that of bytes.
 */
function framed() {
  return createMiddleware<AppEnv>(async function pageIsFramed(c, next) {
    await next()
    for (const [name, value] of Object.entries(PAGE_HEADERS)) c.res.headers.set(name, value)
  })
}

function neverCached() {
  return createMiddleware<AppEnv>(async function apiIsNeverCached(c, next) {
    await next()
    if (!c.res.headers.has('cache-control')) c.res.headers.set('cache-control', 'no-store')
  })
}

function answerError(c: Ctx, { log }: Parts, error: unknown): Response {
  const { requestId } = c.var
  if (!(error instanceof SandlotError))
    log.error({ err: error, requestId, path: c.req.path }, 'a request failed')
  if (error instanceof SandlotError && error.retryAfterSeconds !== undefined)
    c.header('retry-after', String(error.retryAfterSeconds))
  return c.json(toErrorBody(error, requestId), error instanceof SandlotError ? statusOf(error) : 500)
}

/** Hono wants statuses that have a body as literals; ours all have one. */
function statusOf(error: SandlotError) {
  return error.status as 400 | 401 | 403 | 404 | 409 | 413 | 429 | 500 | 501 | 503 | 507
}
