/** Every route of the real app, asked with keys that lack a scope. */
import type { Action } from '@sandlot/shared/base/action'
import { ACTIONS } from '@sandlot/shared/actions'
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
import { read } from './source-files.ts'

/** `public`: asks for no sign-in. `cookie`: a sign-in on the page, no key whatever its scopes. */
type Needs = 'public' | 'cookie' | readonly KeyScope[]

/** Routes that are no actions. `/metrics`: by its own token, or from this machine. */
const OTHERS = ['/healthz', '/readyz', '/metrics', '/ws', '/assets/*', '/*'].map((path) => `GET ${path}`)

const NEEDED = new Map<string, Needs>([
  ...['ALL /api/*', ...OTHERS].map((route) => [route, 'public'] as const),
  ...Object.values<Action>(ACTIONS).map((action) => [action.route, neededFor(action)] as const),
])

function neededFor({ scope, role }: Action): Needs {
  if (scope === 'public' || scope === 'cookie') return scope
  return role === 'admin' ? ['admin', scope] : [scope]
}

/** Routes of docs/api.md with the callers that it names. */
function documented(): [string, string][] {
  const lines = read('docs/api.md').text.match(/^- `[A-Z]+`?[,` ].*?\([^)]*\)/gm) ?? []
  return lines.flatMap((line) => {
    const caller = /\(([^)]*)\)$/.exec(line)?.[1] ?? ''
    const said = [...line.matchAll(/`([A-Z]+)(?: ([^`?]+)[^`]*)?`/g)]
    // A method without a path has that of the next one.
    return said.map(([, method, path], at): [string, string] => [
      `${method} ${path ?? said.slice(at).find(([, , other]) => other !== undefined)?.[2]}`,
      caller,
    ])
  })
}

function callerOf({ scope, role, guests }: Action): string {
  if (scope === 'public') return scope
  const callers = [
    ...(role === 'admin' ? [role] : []),
    ...(scope === 'cookie' ? [scope] : []),
    ...(guests === undefined ? [] : ['no guest']),
  ]
  return (callers.length === 0 || callers[0] === 'no guest' ? ['user', ...callers] : callers).join(', ')
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

test('every route is an action', () => {
  expect(routesOf(harness).toSorted()).toEqual([...NEEDED.keys()].toSorted())
})

test('docs/api.md has every action with its callers', () => {
  const actions = Object.values<Action>(ACTIONS).map((action) => `${action.route} (${callerOf(action)})`)
  const said = documented()
    .map(([route, caller]) => `${route} (${caller.replace('cookie, admin', 'admin, cookie')})`)
    .filter((line) => !OTHERS.some((other) => line.startsWith(`${other} `)))
  expect(said.toSorted()).toEqual([...actions, 'GET /oauth/mcp/client.json (public)'].toSorted())
})

test('a key without a scope that a route needs is refused there, and is told which', async () => {
  for (const [route, needs] of NEEDED) {
    if (needs === 'public') continue
    if (needs === 'cookie') {
      expect(`${route}: ${await ask(route, SCOPES)}`).toBe(
        `${route}: 403 An API key cannot do this. Sign in on the page.`,
      )
      continue
    }
    const needed = new Set(needs)
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
