/** A user who was sent away to sign in, and returns to a restarted agent. */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { MAX_SECRET_CHARS, secretName } from '@sandlot/shared/account/secrets'
import { openSessionStore } from '@sandlot/storage/store/open'
import type { SessionStore } from '@sandlot/storage/sessions/store'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Flows } from '../../../src/mcp/oauth/flows.ts'
import { UserSecrets } from '../../../src/people/user-secrets.ts'
import { createVault } from '../../../src/people/vault.ts'
import { type McpBench, batchOf, openMcpBench } from '../mcp-bench.ts'
import { ADA, linkOf } from './bench.ts'
import { type OAuthServer, startOAuthServer } from './server.ts'
import { testFolder } from '../../../../../test/folders.ts'

const BOB = 'u_bob'
const SECRET = 'very-secret-of-ours'
const RECORD = 'mcp:cal:sign-ins'

let folder: string
let store: SessionStore
let server: OAuthServer
let key: Uint8Array

beforeEach(async () => {
  folder = testFolder('sign-ins')
  store = await openSessionStore(join(folder, 'sessions.db'))
  server = await startOAuthServer()
  key = randomBytes(32)
})

afterEach(async () => {
  vi.useRealTimers()
  await server[Symbol.asyncDispose]()
  await store.close()
})

const userSecrets = (): UserSecrets =>
  new UserSecrets({
    rows: store.people.secrets,
    vault: createVault([key]),
    redact: () => undefined,
    now: Date.now,
  })

/** The agent, on what is kept. */
const started = (
  auth: object = {},
  change: Parameters<typeof openMcpBench>[1] = {},
  url = server.url,
): McpBench =>
  openMcpBench({ cal: { url, auth: { type: 'oauth', ...auth } } }, { secrets: userSecrets(), ...change })

const link = async (bench: McpBench, user = ADA): Promise<string> =>
  linkOf(await batchOf(await bench.tools(user)).call('connect_cal', {}))

/** The answer of a user who got a link before the restart. */
async function sentAway(auth: object = {}): Promise<URLSearchParams> {
  await using bench = started(auth)
  return server.agree(await link(bench))
}

test('completes once; its record is sealed, removed afterwards, and has a name that users cannot choose', async () => {
  const answer = await sentAway()
  const row = await store.people.secrets.get(ADA, RECORD)
  const sealed = Buffer.from(row?.sealed ?? []).toString('latin1')
  expect(sealed.length).toBeGreaterThan(100)
  expect(sealed).not.toContain(answer.get('state') ?? '')
  expect((await userSecrets().names(ADA)).map(({ name }) => name)).not.toContain(RECORD)

  await using bench = started()
  const both = await Promise.all([bench.mcp.finishSignIn(ADA, answer), bench.mcp.finishSignIn(ADA, answer)])
  expect(both.filter((one) => 'server' in one)).toEqual([{ server: 'cal' }])
  expect(await batchOf(await bench.tools(ADA)).call('look', {})).toMatchObject({ status: 'completed' })
  expect(await store.people.secrets.get(ADA, RECORD)).toBeUndefined()
  expect(server.tokenRequests).toHaveLength(1)
})

test('a link that is still valid is returned again after the restart', async () => {
  await using before = started()
  const first = await link(before)
  await using after = started()
  expect(await link(after)).toBe(first)
})

test('a sign-in that was used before the restart cannot be used again, however it ended', async () => {
  const used: URLSearchParams[] = []
  {
    await using bench = started()
    const refused = new URLSearchParams({
      state: new URL(await link(bench)).searchParams.get('state') ?? '',
      error: 'access_denied',
    })
    expect(await bench.mcp.finishSignIn(ADA, refused)).toHaveProperty('problem')
    const agreed = server.agree(await link(bench))
    expect(await bench.mcp.finishSignIn(ADA, agreed)).toEqual({ server: 'cal' })
    used.push(refused, agreed)
  }
  await using bench = started()
  for (const answer of used)
    expect(await bench.mcp.finishSignIn(ADA, answer)).toMatchObject({
      problem: expect.stringContaining('not known any more'),
    })
  expect(server.tokenRequests).toHaveLength(1)
})

test('the state of another user, a forged one and a missing one are refused, and invalidate nothing', async () => {
  const answer = await sentAway()
  const forged = new URLSearchParams(answer)
  forged.set('state', 'x'.repeat(32))
  await using bench = started()
  for (const [user, tried] of [
    [BOB, answer],
    [ADA, forged],
    [ADA, new URLSearchParams({ code: answer.get('code') ?? '' })],
  ] as const)
    expect(await bench.mcp.finishSignIn(user, tried)).toHaveProperty('problem')
  expect(server.tokenRequests).toHaveLength(0)
  expect(await bench.mcp.finishSignIn(ADA, answer)).toEqual({ server: 'cal' })
})

test('it expires after ten minutes', async () => {
  const answer = await sentAway()
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 600_001 })
  await using bench = started()
  expect(await bench.mcp.finishSignIn(ADA, answer)).toHaveProperty('problem')
  expect(server.tokenRequests).toHaveLength(0)
})

test('a code is not sent when the server, redirect, authority or client has changed', async () => {
  await using other = await startOAuthServer()
  const answer = await sentAway()
  const changed = [
    started({}, {}, other.url),
    started({}, { redirectUrl: 'https://elsewhere.example.org/oauth/mcp' }),
    started({ issuer: other.origin }),
    started({ clientId: 'ours', clientSecret: SECRET }),
  ]
  for (const bench of changed) {
    expect(await bench.mcp.finishSignIn(ADA, answer)).toHaveProperty('problem')
    await bench.close()
  }
  expect([...server.tokenRequests, ...other.tokenRequests]).toEqual([])
})

test('the operator’s client secret is not stored, and is used', async () => {
  server.clients.set('ours', SECRET)
  const own = { clientId: 'ours', clientSecret: SECRET }
  const answer = await sentAway(own)
  const kept = await userSecrets().get(ADA, RECORD)
  expect(kept).toContain(answer.get('state'))
  expect(kept).not.toContain(SECRET)
  await using bench = started(own)
  expect(await bench.mcp.finishSignIn(ADA, answer)).toEqual({ server: 'cal' })
  expect(server.tokenRequests[0]?.authorization).toMatch(/^Basic /)
})

test('when no key opens the record, the user gets a new link', async () => {
  const answer = await sentAway()
  key = randomBytes(32)
  await store.people.secrets.remove(ADA, 'mcp:cal:client')
  await using bench = started()
  expect(await bench.mcp.finishSignIn(ADA, answer)).toHaveProperty('problem')
  expect(await bench.mcp.finishSignIn(ADA, server.agree(await link(bench)))).toEqual({ server: 'cal' })
})

test('records that an earlier version stored under names that users can choose are migrated once', async () => {
  const kept = ['tokens', 'client'] as const
  {
    await using bench = started()
    expect(await bench.mcp.finishSignIn(ADA, server.agree(await link(bench)))).toEqual({ server: 'cal' })
    for (const what of kept) {
      const value = await userSecrets().get(ADA, `mcp:cal:${what}`)
      expect(value).toBeDefined()
      await userSecrets().set(ADA, `mcp.cal.${what}`, value)
      await userSecrets().set(ADA, `mcp:cal:${what}`, undefined)
    }
  }
  await using bench = started()
  // It has to be renewed, by the client that was registered before.
  server.valid.clear()
  const batch = batchOf(await bench.tools(ADA))
  expect(await batch.call('look', {})).toMatchObject({ status: 'completed' })
  expect([server.registrations, server.refreshes]).toEqual([1, 1])
  for (const what of kept) {
    expect(await store.people.secrets.get(ADA, `mcp.cal.${what}`)).toBeUndefined()
    expect(await store.people.secrets.get(ADA, `mcp:cal:${what}`)).toBeDefined()
    for (const name of [`mcp.cal.${what}`, `mcp:cal:${what}`, `mcp.a.b.${what}`])
      expect(secretName.safeParse(name).success, name).toBe(false)
    expect(secretName.safeParse(`mcp.cal.${what}2`).success).toBe(true)
  }
})

test('records that no key opens count as absent: the next sign-in replaces them', async () => {
  {
    await using bench = started()
    expect(await bench.mcp.finishSignIn(ADA, server.agree(await link(bench)))).toEqual({ server: 'cal' })
    for (const name of [RECORD, 'mcp.cal.tokens', 'mcp.cal.client']) await userSecrets().set(ADA, name, '{}')
  }
  key = randomBytes(32)
  await using bench = started()
  expect(await bench.mcp.finishSignIn(ADA, server.agree(await link(bench)))).toEqual({ server: 'cal' })
  expect(await batchOf(await bench.tools(ADA)).call('look', {})).toMatchObject({ status: 'completed' })
  for (const what of ['tokens', 'client'])
    expect(await store.people.secrets.get(ADA, `mcp.cal.${what}`)).toBeUndefined()
})

test('metadata of an authority that a code exchange does not need is not stored', async () => {
  server.authoritySays = { scopes_supported: Array.from({ length: 5_000 }, (_, n) => `scope-${n}`) }
  const answer = await sentAway()
  expect((await userSecrets().get(ADA, RECORD))?.length).toBeLessThan(4_000)
  await using bench = started()
  expect(await bench.mcp.finishSignIn(ADA, answer)).toEqual({ server: 'cal' })
})

test('fewer links fit when they are long: the oldest is evicted', async () => {
  let kept: string | undefined
  const flows = new Flows({
    read: async () => kept,
    save: async (text) => void (kept = text),
    about: async () => 'x',
    now: () => 0,
  })
  const authority = { issuer: 'https://a.example', url: 'https://a.example' }
  for (const state of ['first', 'second', 'third', 'fourth'])
    await flows.add({ state, url: 'u'.repeat(6_000), verifier: 'v', authority, endsAt: 1 })
  expect((await flows.pending()).map(({ state }) => state)).toEqual(['third', 'fourth'])
  expect(kept?.length).toBeLessThanOrEqual(MAX_SECRET_CHARS)
})
