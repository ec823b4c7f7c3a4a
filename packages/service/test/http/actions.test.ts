/** Two more actions in an app of their own: what a row and a handler are enough for. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { getRequestListener } from '@hono/node-server'
import { secretList } from '@sandlot/shared/account/secrets'
import type { KeyScope } from '@sandlot/shared/account/sign-in-api'
import { type Action, acts } from '@sandlot/shared/base/action'
import { SandlotError, toErrorBody } from '@sandlot/shared/base/errors'
import { openAccounts } from '@sandlot/storage/accounts/accounts'
import { Hono } from 'hono'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { OneAgent } from '../../src/agent/agents.ts'
import { UserTraffic } from '../../src/auth/user-traffic.ts'
import { addActions } from '../../src/http/actions.ts'
import type { AppEnv } from '../../src/http/context.ts'
import { makeLog } from '../../src/log.ts'
import { ANN, startHarness } from '../support/harness.ts'

type Role = 'admin' | 'guest'

const ACTIONS: Record<string, Action> = {
  greet: {
    route: 'POST /api/greetings/:name',
    scope: 'chat',
    role: 'admin',
    request: z.strictObject({ word: z.string() }),
    response: z.object({ said: z.string() }),
  },
  listNames: {
    route: 'GET /api/names/:id',
    scope: 'read',
    guests: 'Guests have no names.',
    params: z.object({ id: z.enum(['secrets']) }),
    response: secretList,
    agent: acts('secrets')('list'),
  },
}

/** The address of an app with these actions, and keys with some scopes. */
async function start() {
  const harness = await startHarness()
  const accounts = await openAccounts(join(harness.folder, 'others.db'), {
    secret: '0123456789abcdefghijklmnopqrstuvwxyzABCDEF',
    publicUrl: 'http://localhost',
  })
  const ids = {
    admin: (await accounts.users.create({ ...ANN, role: 'admin' })).id,
    guest: (await accounts.users.create({ ...ANN, email: 'gil@example.org', role: 'guest' })).id,
  }
  const place = { url: harness.config.agentUrl }
  const agent = new OneAgent(place, {
    log: makeLog('silent', (text) => text),
    onSessionChanged: () => undefined,
    onConnected: () => undefined,
  })
  const app = new Hono<AppEnv>()
  const parts = { accounts, agent, isOurs: () => true, traffic: new UserTraffic() }
  const handlers = {
    greet: async (c: { req: { param(name: string): string | undefined } }, body: () => Promise<unknown>) =>
      Response.json({ said: `${JSON.stringify(await body())} to ${c.req.param('name')}` }),
  }
  const add = (rows: Record<string, Action>) =>
    addActions(app, parts, { handlers, before: {} }, Object.entries(rows))
  add(ACTIONS)
  expect(() => add({ other: { route: 'GET /api/other', scope: 'public' } })).toThrow('neither a handler')
  app.onError((error) =>
    Response.json(toErrorBody(error), { status: error instanceof SandlotError ? error.status : 500 }),
  )
  const answer = getRequestListener(app.fetch)
  const server = createServer((request, response) => void answer(request, response)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(async () => {
    server.close()
    await agent.close()
    await accounts.close()
    await harness.close()
  })
  await agent.whenConnected(new AbortController().signal)
  const { port } = server.address() as AddressInfo
  return async (scopes: KeyScope[], method: string, path: string, body?: object, who: Role = 'admin') => {
    const { key } = await accounts.keys.create(ids[who], scopes.join(' '), { scopes, expiresAt: null })
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: body === undefined ? null : JSON.stringify(body),
    })
    return { status: answer.status, body: (await answer.json()) as object }
  }
}

test('a row and a handler are an action; a row with an agent needs no handler', async () => {
  const call = await start()
  const greet = ['POST', '/api/greetings/bob'] as const
  expect(await call(['admin', 'chat'], ...greet, { word: 'hello' })).toEqual({
    status: 200,
    body: { said: '{"word":"hello"} to bob' },
  })
  expect(await call(['admin', 'chat'], ...greet, { word: 7 })).toMatchObject({
    status: 400,
    body: { message: expect.stringContaining('word') },
  })
  expect(await call(['chat'], ...greet, { word: 'hello' })).toMatchObject({
    status: 403,
    body: { message: expect.stringContaining('“admin”') },
  })
  expect(await call(['read'], 'GET', '/api/names/secrets')).toMatchObject({
    status: 200,
    body: { secrets: [] },
  })
  expect(await call(['read'], 'GET', '/api/names/others')).toMatchObject({
    status: 400,
    body: { message: expect.stringContaining('id: ') },
  })
  expect(await call(['files'], 'GET', '/api/names/secrets')).toMatchObject({ status: 403 })
  expect(await call(['read'], 'GET', '/api/names/secrets', undefined, 'guest')).toMatchObject({
    status: 403,
    body: { message: 'Guests have no names.' },
  })
})
