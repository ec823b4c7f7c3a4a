/** The HTTP app: what holds for every answer, then the routes. */
import { ACTIONS } from '@sandlot/shared/actions'
import type { Action } from '@sandlot/shared/base/action'
import { MCP_CLIENT_PATH, publishedMcpClient } from '@sandlot/shared/base/mcp-client'
import { SandlotError, toErrorBody } from '@sandlot/shared/base/errors'
import { MAX_FRAME_BYTES } from '@sandlot/shared/chat/frames'
import { newId } from '@sandlot/shared/base/ids'
import { PAGE_HEADERS } from '@sandlot/shared/workspace/files'
import { Hono } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import { createMiddleware } from 'hono/factory'
import { matchedRoutes } from 'hono/route'
import { secureHeaders } from 'hono/secure-headers'
import type { ServiceConfig } from '../config.ts'
import { addActions, type Registration } from './actions.ts'
import type { AppEnv, Ctx, Parts } from './context.ts'
import { healthRoutes } from './health-routes.ts'
import { addressIn } from '../auth/address.ts'
import { textAddressesOnly } from './request.ts'
import { webApp } from './web-app.ts'

export function makeApp(parts: Parts, registration: Registration): Hono<AppEnv> {
  const { config } = parts
  const actions = Object.entries<Action>(ACTIONS)
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
  addActions(app, parts, registration, actions.filter(hasOwnLimit))
  app.use(
    bodyLimit({
      maxSize: MAX_FRAME_BYTES,
      onError: () => {
        throw new SandlotError('too_large', `A request has at most ${MAX_FRAME_BYTES} bytes.`)
      },
    }),
  )
  addActions(
    app,
    parts,
    registration,
    actions.filter((one) => !hasOwnLimit(one)),
  )
  const { publicUrl } = config
  // For authorization servers, which have no session: the content is public.
  if (publicUrl !== undefined) app.get(MCP_CLIENT_PATH, (c) => c.json(publishedMcpClient(publicUrl)))
  app
    .route('/', healthRoutes(parts))
    .get('/ws', () => {
      throw new SandlotError('bad_request', 'This address takes WebSockets only.')
    })
    // Without a limit of addresses: this answer costs no more than a refusal would.
    .all('/api/*', () => {
      throw new SandlotError('not_found', 'There is no such route.')
    })
    .route('/', webApp(config.webDist))

  app.notFound((c) => answerError(c, parts, new SandlotError('not_found', 'There is nothing here.')))
  app.onError((error, c) => answerError(c, parts, error))
  return app
}

/** Registered before the limit of everything else. */
function hasOwnLimit([, { scope, route }]: [string, Action]): boolean {
  return scope === 'files' || route === ACTIONS.runCommand.route
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
