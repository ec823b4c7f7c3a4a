/** Every route of the real app, asked with keys that lack a scope. */
import { newApiKey } from '@sandlot/shared/account/api'
import { type KeyScope, keyScope } from '@sandlot/shared/account/sign-in-api'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  type Harness,
  refusedUpgrade,
  routesOf,
  setUp,
  startHarness,
} from '../packages/service/test/support/harness.ts'

/** `public`: asks for no sign-in. `cookie`: a sign-in on the page, no key whatever its scopes. */
type Needs = 'public' | 'cookie' | KeyScope | readonly KeyScope[]

const ADMIN_READ = ['admin', 'read'] as const
const ADMIN_CHANGE = ['admin', 'chat'] as const

const NEEDED: Record<string, Needs> = {
  'GET /healthz': 'public',
  'GET /readyz': 'public',
  // By its own token, or from this machine.
  'GET /metrics': 'public',
  'GET /ws': 'public',
  'ALL /api/*': 'public',
  'GET /assets/*': 'public',
  'GET /*': 'public',

  'GET /api/setup': 'public',
  'POST /api/setup': 'public',
  'POST /api/sign-in': 'public',
  'POST /api/sign-in/code': 'public',
  'POST /api/sign-out': 'public',
  'GET /api/sign-in/providers': 'public',
  'POST /api/sign-in/providers/:id': 'public',
  'GET /api/sign-in/callback/:id': 'public',
  'GET /api/sign-in/problems/:id': 'public',
  'POST /api/invitations/look': 'public',
  'POST /api/invitations/accept': 'public',
  'POST /api/reset': 'public',
  'POST /api/reset/password': 'public',

  'GET /api/me': 'read',
  'GET /api/me/effective': 'read',
  'GET /api/usage': 'read',
  'GET /api/usage/budgets': 'read',
  'GET /api/admin/usage': ADMIN_READ,
  'PUT /api/password': 'cookie',
  'PUT /api/account/name': 'cookie',
  'GET /api/keys': 'read',
  'POST /api/keys': 'cookie',
  'DELETE /api/keys/:id': 'cookie',
  'POST /api/sign-in/providers/:id/link': 'cookie',
  'GET /api/account/ways': 'cookie',
  'GET /api/export': 'cookie',
  'POST /api/account/delete': 'cookie',
  'POST /api/account/second-factor': 'cookie',
  'POST /api/account/second-factor/confirm': 'cookie',
  'POST /api/account/second-factor/disable': 'cookie',
  'GET /api/account/sign-ins': 'cookie',
  'DELETE /api/account/sign-ins': 'cookie',
  'DELETE /api/account/sign-ins/:id': 'cookie',
  'DELETE /api/account/providers/:id': 'cookie',

  'GET /api/admin/audit': ADMIN_READ,
  'GET /api/admin/audit/export': ADMIN_READ,
  'GET /api/admin/audit/chains': ADMIN_READ,
  'GET /api/admin/backups': ADMIN_READ,
  'GET /api/admin/retention': ADMIN_READ,
  'PUT /api/admin/retention': ADMIN_CHANGE,
  'POST /api/admin/retention/preview': ADMIN_CHANGE,
  'GET /api/users': ADMIN_READ,
  'POST /api/users': ADMIN_CHANGE,
  'PATCH /api/users/:id': ADMIN_CHANGE,
  'DELETE /api/users/:id': ADMIN_CHANGE,
  'POST /api/users/:id/password': ADMIN_CHANGE,
  'DELETE /api/users/:id/second-factor': ADMIN_CHANGE,
  'GET /api/users/:id/settings': ADMIN_READ,
  'PUT /api/users/:id/settings': ADMIN_CHANGE,
  'GET /api/users/:id/effective': ADMIN_READ,
  'GET /api/terminals': 'exec',
  'POST /api/terminals': 'exec',
  'GET /api/terminals/:id': 'exec',
  'DELETE /api/terminals/:id': 'exec',
  'GET /api/models': ADMIN_READ,
  'GET /api/admin/alerts': ADMIN_READ,
  'POST /api/admin/alerts/test': ADMIN_CHANGE,
  'POST /api/models': ADMIN_CHANGE,
  'PUT /api/models/:id': ADMIN_CHANGE,
  'DELETE /api/models/:id': ADMIN_CHANGE,
  'POST /api/models/test': ADMIN_CHANGE,
  'GET /api/admin/overview': ADMIN_READ,
  'GET /api/admin/overview/checks': ADMIN_READ,
  'POST /api/admin/overview/checks': ADMIN_CHANGE,
  'POST /api/admin/overview/prompts/:id/stop': ADMIN_CHANGE,
  'GET /api/admin/tools': ADMIN_READ,
  'GET /api/admin/sandboxes': ADMIN_READ,
  'GET /api/admin/sandboxes/use': ADMIN_READ,
  'POST /api/admin/sandboxes/:userId/stop': ADMIN_CHANGE,
  'POST /api/admin/sandboxes/:userId/reset': ADMIN_CHANGE,
  'GET /api/admin/rules': ADMIN_READ,
  'POST /api/admin/rules': 'cookie',
  'DELETE /api/admin/rules/:id': 'cookie',
  'GET /api/admin/configuration': ADMIN_READ,
  'GET /api/mcp-servers': 'read',
  'POST /api/mcp-servers': 'cookie',
  'PUT /api/mcp-servers/:id': 'cookie',
  'DELETE /api/mcp-servers/:id': 'cookie',
  'POST /api/mcp-servers/:id/test': 'cookie',
  'POST /api/mcp-servers/:id/sign-in': 'cookie',
  'POST /api/mcp-servers/:id/sign-out': 'cookie',
  'GET /api/admin/mcp-servers': ADMIN_READ,
  'POST /api/admin/mcp-servers': ADMIN_CHANGE,
  'PUT /api/admin/mcp-servers/:id': ADMIN_CHANGE,
  'DELETE /api/admin/mcp-servers/:id': ADMIN_CHANGE,
  'POST /api/admin/mcp-servers/:id/test': ADMIN_CHANGE,
  'POST /api/admin/mcp-servers/:id/sign-in': 'cookie',
  'POST /api/admin/mcp-servers/:id/sign-out': 'cookie',
  'GET /api/teams': ADMIN_READ,
  'POST /api/teams': ADMIN_CHANGE,
  'PATCH /api/teams/:id': ADMIN_CHANGE,
  'DELETE /api/teams/:id': ADMIN_CHANGE,
  'PUT /api/teams/:id/members/:userId': ADMIN_CHANGE,
  'GET /api/teams/:id/settings': ADMIN_READ,
  'PUT /api/teams/:id/settings': ADMIN_CHANGE,
  'GET /api/invitations': ADMIN_READ,
  'POST /api/invitations': ADMIN_CHANGE,
  'DELETE /api/invitations/:id': ADMIN_CHANGE,
  'PUT /api/instructions/team': ADMIN_CHANGE,

  'POST /api/chat': 'chat',
  'GET /api/sessions': 'read',
  'GET /api/sessions/:id': 'read',
  'PATCH /api/sessions/:id': 'chat',
  'DELETE /api/sessions/:id': 'chat',
  'POST /api/sessions/:id/fork': 'chat',
  'POST /api/sessions/:id/cancel': 'chat',
  'GET /api/sessions/:id/approvals': 'read',
  'POST /api/sessions/:id/approvals/:callId': 'chat',
  'GET /api/approvals': 'read',
  'GET /api/sessions/:id/prompts/:promptId/export': 'read',
  'GET /api/sessions/:id/export': 'read',
  'GET /api/sessions/:id/outputs/:callId': 'read',
  'GET /api/sessions/:id/images/:seq/:index': 'read',
  'GET /api/sessions/:id/shares': 'read',
  'POST /api/sessions/:id/shares': 'cookie',
  'DELETE /api/sessions/:id/shares/:shareId': 'chat',
  'GET /api/sessions/:id/snapshots': 'read',
  'POST /api/sessions/:id/snapshots': 'cookie',
  'DELETE /api/sessions/:id/snapshots/:snapshotId': 'chat',
  'POST /api/sessions/:id/comments': 'chat',
  'GET /api/snapshots/:id': 'read',
  'GET /api/snapshots/:id/outputs/:callId': 'read',
  'GET /api/snapshots/:id/images/:seq/:index': 'read',
  'GET /api/people': 'read',
  'GET /api/search': 'read',
  'PUT /api/sessions/marks': 'chat',
  'GET /api/projects': 'read',
  'POST /api/projects': 'cookie',
  'PUT /api/projects/:id': 'cookie',
  'DELETE /api/projects/:id': 'cookie',

  'POST /api/images': 'files',
  'GET /api/images/:id': 'files',
  'DELETE /api/images/:id': 'files',
  'GET /api/files': 'files',
  'GET /api/files/content': 'files',
  'PUT /api/files/content': 'files',
  'GET /api/files/preview': 'files',
  'DELETE /api/files': 'files',
  'GET /api/files/search': 'files',
  'POST /api/files/folder': 'files',
  'POST /api/files/move': 'files',
  'GET /api/files/trash': 'files',
  'DELETE /api/files/trash': 'files',
  'POST /api/files/trash/:id/restore': 'files',
  'GET /api/files/zip': 'files',
  'DELETE /api/files/uploads/:upload': 'files',

  'GET /api/ports': 'exec',
  'GET /api/ports/:port/open': 'exec',
  'POST /api/exec': 'exec',
  'GET /api/sandbox': 'exec',
  'POST /api/sandbox/reset': 'exec',
  'POST /api/sandbox/stop': 'exec',
  'GET /api/sandbox/jobs': 'exec',
  'GET /api/sandbox/jobs/:id/output': 'exec',
  'DELETE /api/sandbox/jobs/:id': 'exec',

  'GET /api/rules': 'read',
  'GET /api/rules/asked': 'read',
  'POST /api/rules': 'cookie',
  'POST /api/rules/preview': 'chat',
  'DELETE /api/rules/:id': 'cookie',
  'GET /api/secrets': 'read',
  'PUT /api/secrets/:name': 'cookie',
  'DELETE /api/secrets/:name': 'cookie',
  'GET /api/instructions': 'read',
  'PUT /api/instructions': 'cookie',
  'GET /api/instructions/team': 'read',
  'GET /api/notices/settings': 'cookie',
  'PUT /api/notices/settings': 'cookie',
  'GET /api/notices/push': 'read',
  'POST /api/notices/push': 'cookie',
  'DELETE /api/notices/push': 'cookie',
  'POST /api/notices/test': 'cookie',
  'GET /oauth/mcp': 'cookie',
}

const SCOPES = keyScope.options

let harness: Harness
/** An administrator's key with exactly these scopes. */
let keyOf: (scopes: readonly KeyScope[]) => Promise<string>

beforeAll(async () => {
  harness = await startHarness()
  const ann = await setUp(harness)
  const made = new Map<string, string>()
  keyOf = async (scopes) => {
    const name = scopes.join(' ')
    const answer = made.has(name) ? undefined : await ann.post('/api/keys', { name, scopes })
    if (answer !== undefined) made.set(name, newApiKey.parse(await answer.json()).key)
    return made.get(name) ?? ''
  }
})

afterAll(() => harness.close())

async function ask(route: string, scopes: readonly KeyScope[]): Promise<string> {
  const [method = '', path = ''] = route.split(' ')
  const answer = await fetch(`${harness.service.url}${path.replaceAll(/:\w+/g, 'x')}`, {
    method,
    headers: { authorization: `Bearer ${await keyOf(scopes)}` },
  })
  const { message } = (await answer.json().catch(() => ({}))) as { message?: string }
  return answer.status === 403 ? `403 ${/scope “(\w+)”/.exec(message ?? '')?.[1] ?? message}` : 'admitted'
}

test('every route is in the table', () => {
  expect(routesOf(harness).toSorted()).toEqual(Object.keys(NEEDED).toSorted())
})

test('a key without a scope that a route needs is refused there, and is told which', async () => {
  for (const [route, needs] of Object.entries(NEEDED)) {
    if (needs === 'public') continue
    if (needs === 'cookie') {
      expect(`${route}: ${await ask(route, SCOPES)}`).toBe(
        `${route}: 403 An API key cannot do this. Sign in on the page.`,
      )
      continue
    }
    const needed = new Set([needs].flat())
    for (const scope of SCOPES) {
      const others = SCOPES.filter((other) => other !== scope)
      const wanted = needed.has(scope) ? `403 ${scope}` : 'admitted'
      expect(`${route} without ${scope}: ${await ask(route, others)}`).toBe(
        `${route} without ${scope}: ${wanted}`,
      )
    }
    expect(`${route}: ${await ask(route, [...needed])}`).toBe(`${route}: admitted`)
  }
})

test('the WebSocket takes a key with the scope “chat”, and no other', async () => {
  const { url } = harness.service
  const authorization = `Bearer ${await keyOf(SCOPES.filter((scope) => scope !== 'chat'))}`
  expect(await refusedUpgrade(url, { authorization })).toMatchObject({
    status: 403,
    body: { message: expect.stringContaining('no scope “chat”') },
  })
  expect(await refusedUpgrade(url, { authorization: 'Bearer sk-sandlot-x' })).toMatchObject({ status: 401 })
})
