import { request } from 'node:http'
import { mkdir, readFile, stat, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { errorBody, readiness } from '@sandlot/shared/account/api'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { DEFAULT_RATES } from '../../src/auth/limits.ts'
import { ANN, addUser, browser, cookieOf, makeKey, setUp, startHarness, waitFor } from '../support/harness.ts'
import type { Harness } from '../support/harness.ts'

let harness: Harness
let url: string

beforeEach(async () => {
  harness = await startHarness()
  url = harness.service.url
})

afterEach(() => harness.close())

const errorOf = async (response: Response) => errorBody.parse(await response.json())

describe('set-up', () => {
  test('the printed link makes the administrator once; a restart before that prints it again', async () => {
    const entry = new URL(harness.service.entryUrl)
    expect(entry.pathname).toBe('/setup')
    const token = entry.searchParams.get('token')
    await harness.restart()
    expect(new URL(harness.service.entryUrl).searchParams.get('token')).toBe(token)
    const anybody = browser(harness.service.url, '')
    expect(await (await anybody.get('/api/setup')).json()).toEqual({ needed: true })

    const done = await anybody.post('/api/setup', { token, ...ANN })
    expect(await done.json()).toMatchObject({
      name: 'Ann',
      role: 'admin',
      model: { name: expect.any(String) },
    })
    const ann = browser(harness.service.url, cookieOf(done))
    expect((await ann.get('/api/me')).status).toBe(200)

    const again = await anybody.post('/api/setup', { token, ...ANN, email: 'eve@example.org' })
    expect(again.status).toBe(403)
    expect(await (await anybody.get('/api/setup')).json()).toEqual({ needed: false })
    await harness.restart()
    expect(harness.service.entryUrl).toBe(harness.service.url)
  })

  test('a wrong token, a short password and a foreign page are refused, and the link stays good', async () => {
    const anybody = browser(url, '')
    const wrong = await anybody.post('/api/setup', { token: 'guess', ...ANN })
    expect(await errorOf(wrong)).toMatchObject({ code: 'forbidden' })
    const token = new URL(harness.service.entryUrl).searchParams.get('token')
    const short = await anybody.post('/api/setup', { token, ...ANN, password: 'short' })
    expect(await errorOf(short)).toMatchObject({
      code: 'bad_request',
      message: expect.stringContaining('password'),
    })
    const foreign = await anybody.post('/api/setup', { token, ...ANN }, { origin: 'https://evil.example' })
    expect(foreign.status).toBe(403)
    await setUp(harness)
  })

  test('secrets are files of their owner alone, and never in the log', async () => {
    const keys = join(harness.folder, 'keys')
    const token = new URL(harness.service.entryUrl).searchParams.get('token') ?? ''
    const cookies = await readFile(join(keys, 'service-cookies'), 'utf8')
    for (const name of ['service-cookies', 'setup-token'])
      expect((await stat(join(keys, name))).mode & 0o777).toBe(0o600)
    const ann = await setUp(harness)
    await fetch(`${url}/setup?token=${token}`)
    await fetch(`${url}/nowhere/${token}`)
    await ann.get('/api/me')
    const log = harness.logLines.join('\n')
    expect(log).toContain('answered')
    for (const secret of [token, cookies, ann.cookie.split('=')[1] ?? '?', ANN.password])
      expect(log).not.toContain(secret)
    await expect(stat(join(keys, 'setup-token'))).rejects.toThrow()
  })
})

/** `fetch` lets nobody choose the host. */
function statusOf(url: string, path: string, headers: Record<string, string>): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    request(`${url}${path}`, { headers }, (answer) => resolve(answer.resume().statusCode))
      .on('error', reject)
      .end()
  })
}

describe('sign-in', () => {
  test('failures count also when they come all at once', async () => {
    await setUp(harness)
    const tries = Array.from({ length: 30 }, () =>
      browser(url, '').post('/api/sign-in', { email: ANN.email, password: 'wrong guess' }),
    )
    const statuses = (await Promise.all(tries)).map(({ status }) => status)
    expect(statuses.filter((status) => status === 401)).toHaveLength(DEFAULT_RATES.signInPair.points)
    expect(statuses.filter((status) => status === 429)).toHaveLength(20)
  })

  test('works, ends, and is limited by failures', async () => {
    await setUp(harness)
    await harness.restart({
      rates: {
        ...DEFAULT_RATES,
        signInPair: { points: 2, seconds: 600 },
        signInAddress: { points: 4, seconds: 600 },
      },
    })
    const anybody = browser(harness.service.url, '')
    const tryIt = (email: string, password: string) => anybody.post('/api/sign-in', { email, password })

    const good = await tryIt(ANN.email, ANN.password)
    expect(good.status).toBe(200)
    const ann = browser(harness.service.url, cookieOf(good))
    expect((await ann.post('/api/sign-out')).status).toBe(204)
    expect((await ann.get('/api/me')).status).toBe(401)

    expect((await tryIt(ANN.email, 'wrong one')).status).toBe(401)
    expect((await tryIt(ANN.email, 'wrong two')).status).toBe(401)
    const limited = await tryIt(ANN.email, ANN.password)
    expect(await errorOf(limited)).toMatchObject({
      code: 'rate_limited',
      message: expect.stringMatching(/10 minutes/),
    })
    expect((await tryIt('x@example.org', 'wrong')).status).toBe(401)
    expect((await tryIt('y@example.org', 'wrong')).status).toBe(401)
    expect((await tryIt('z@example.org', 'wrong')).status).toBe(429)
  })
})

describe('requests', () => {
  test('a cookie changes nothing without the origin of our page; a key needs none', async () => {
    const ann = await setUp(harness)
    for (const origin of ['https://evil.example', 'null']) {
      const foreign = await ann.post('/api/keys', { name: 'x' }, { origin })
      expect(await errorOf(foreign)).toMatchObject({ code: 'bad_origin' })
    }
    const json = { 'content-type': 'application/json' }
    const body = JSON.stringify({ name: 'x' })
    const without = await fetch(`${url}/api/keys`, {
      method: 'POST',
      headers: { ...json, cookie: ann.cookie },
      body,
    })
    expect(without.status).toBe(403)
    const authorization = `Bearer ${await makeKey(ann)}`
    const byKey = await fetch(`${url}/api/sessions/none`, { method: 'DELETE', headers: { authorization } })
    expect(await errorOf(byKey)).toMatchObject({ code: 'not_found' })
  })

  test('a key makes and deletes no keys, and no users, not even an administrator’s', async () => {
    const ann = await setUp(harness)
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${await makeKey(ann)}` }
    const { keys } = (await (await ann.get('/api/keys')).json()) as { keys: { id: string }[] }
    const user = { name: 'Eve', email: 'eve@example.org', password: 'long enough' }
    for (const [method, path, body] of [
      ['POST', '/api/keys', { name: 'x' }],
      ['DELETE', `/api/keys/${keys[0]?.id}`, undefined],
      ['POST', '/api/users', user],
    ] as const) {
      const response = await fetch(`${url}${path}`, {
        method,
        headers,
        body: body === undefined ? undefined : JSON.stringify(body),
      })
      expect(await errorOf(response)).toMatchObject({ code: 'forbidden' })
    }
  })

  test.each([
    ['not JSON', '{oops', 'application/json', 400],
    ['another type', 'name=x', 'application/x-www-form-urlencoded', 400],
    ['an unknown field', '{"name":"x","admin":true}', 'application/json', 400],
    ['too large', JSON.stringify({ name: 'x'.repeat(1_100_000) }), 'application/json', 413],
  ])('a body that is %s is refused in the one shape', async (_what, body, type, status) => {
    const ann = await setUp(harness)
    const response = await fetch(`${url}/api/keys`, {
      method: 'POST',
      headers: { 'content-type': type, cookie: ann.cookie, origin: url },
      body,
    })
    expect(response.status).toBe(status)
    const error = await errorOf(response)
    expect(error.requestId).toBe(response.headers.get('x-request-id'))
  })

  test('only an administrator makes users; keys are visible to their owner alone', async () => {
    const ann = await setUp(harness)
    const bob = await addUser(harness, ann, 'bob@example.org')
    const refused = await bob.post('/api/users', {
      name: 'Eve',
      email: 'eve@example.org',
      password: 'long enough',
    })
    expect(await errorOf(refused)).toMatchObject({ code: 'forbidden' })
    const twice = await ann.post('/api/users', {
      name: 'Bob',
      email: 'BOB@example.org',
      password: 'long enough',
    })
    expect(await errorOf(twice)).toMatchObject({ code: 'conflict' })
    await makeKey(ann)
    const { keys } = (await (await ann.get('/api/keys')).json()) as { keys: { id: string }[] }
    expect(keys).toHaveLength(1)
    expect(await (await bob.get('/api/keys')).json()).toEqual({ keys: [] })
    expect((await bob.delete(`/api/keys/${keys[0]?.id}`)).status).toBe(404)
  })

  test('what does not exist is not found, in JSON under /api', async () => {
    expect(await errorOf(await fetch(`${url}/api/nothing`))).toMatchObject({ code: 'not_found' })
    expect(await errorOf(await fetch(`${url}/ws`))).toMatchObject({ code: 'bad_request' })
  })
})

describe('the web app', () => {
  test('is served with a strict policy; other addresses are its own; hashed files are kept for ever', async () => {
    const folder = harness.config.webDist
    await mkdir(join(folder, 'assets'), { recursive: true })
    await writeFile(join(folder, 'index.html'), '<!doctype html><title>Sandlot</title>')
    await writeFile(join(folder, 'assets', 'index-abc123.js'), 'export {}')
    await writeFile(join(harness.folder, 'secret.txt'), 'secret')
    expect((await fetch(url)).status).toBe(200)
    await harness.restart()
    url = harness.service.url

    for (const path of ['/', '/setup?token=x', '/s/some-session']) {
      const page = await fetch(`${url}${path}`)
      expect(page.status).toBe(200)
      expect(page.headers.get('content-type')).toMatch(/^text\/html/)
      expect(page.headers.get('cache-control')).toBe('no-cache')
      const policy = page.headers.get('content-security-policy')
      expect(policy).toContain("script-src 'self' 'wasm-unsafe-eval'")
      expect(policy).toContain("style-src 'self' 'unsafe-inline'")
      expect(policy).toContain("frame-ancestors 'none'")
      expect(page.headers.get('x-content-type-options')).toBe('nosniff')
    }
    const script = await fetch(`${url}/assets/index-abc123.js`)
    expect(script.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
    expect((await fetch(`${url}/assets/gone.js`)).status).toBe(404)
    for (const path of [
      '/../secret.txt',
      '/%2e%2e/secret.txt',
      '/..%2fsecret.txt',
      '/assets/..%2f..%2fsecret.txt',
    ]) {
      expect(await (await fetch(`${url}${path}`)).text()).not.toContain('secret"')
      expect(await (await fetch(`${url}${path}`)).text()).not.toBe('secret')
    }
  })

  test('answers no program that asks for something else: paths of APIs, and files that are not there', async () => {
    const folder = harness.config.webDist
    await mkdir(folder, { recursive: true })
    await writeFile(join(folder, 'index.html'), '<!doctype html><title>Sandlot</title>')
    for (const path of [
      '/openapi.json',
      '/.well-known/oauth-protected-resource',
      '/.well-known/',
      '/mcp',
      '/mcp/sse',
      '/scim/v2/Users',
      '/v1/models',
      '/s/some.json',
      '/apple-touch-icon-120x120.png',
    ]) {
      const answer = await fetch(`${url}${path}`)
      expect({ path, status: answer.status }).toEqual({ path, status: 404 })
      expect(await errorOf(answer)).toMatchObject({ code: 'not_found' })
    }
    for (const path of ['/mcp-servers', '/s/v1', '/settings/mcp', '/scimitar'])
      expect({ path, status: (await fetch(`${url}${path}`)).status }).toEqual({ path, status: 200 })
  })

  test('goes compressed to a browser that takes it, with a tag for each coding, and not again while it is the same', async () => {
    const folder = harness.config.webDist
    const script = 'export const words = "the same again and again"\n'.repeat(50)
    await mkdir(join(folder, 'assets'), { recursive: true })
    await writeFile(join(folder, 'index.html'), '<!doctype html><title>Sandlot</title>')
    await writeFile(join(folder, 'assets', 'font-abc123.woff2'), 'no smaller copy')
    await writeFile(join(folder, 'assets', 'index-abc123.js'), script)
    await writeFile(join(folder, 'assets', 'index-abc123.js.br'), brotliCompressSync(script))
    await writeFile(join(folder, 'assets', 'index-abc123.js.gz'), gzipSync(script))
    const get = (headers: Record<string, string>, path = '/assets/index-abc123.js') =>
      fetch(`${url}${path}`, { headers })
    const seen = new Set<string | null>()
    for (const [accepted, coding] of [
      ['gzip, deflate, br, zstd', 'br'],
      ['gzip;q=0.8, br;q=0', 'gzip'],
      ['gzip', 'gzip'],
      ['identity', null],
    ] as const) {
      const answer = await get({ 'accept-encoding': accepted })
      expect(answer.headers.get('content-encoding')).toBe(coding)
      expect(answer.headers.get('vary')).toBe('Accept-Encoding')
      expect(answer.headers.get('content-type')).toMatch(/^text\/javascript/)
      expect(await answer.text()).toBe(script)
      const etag = answer.headers.get('etag') ?? ''
      seen.add(etag)
      const again = await get({ 'accept-encoding': accepted, 'if-none-match': `"other", W/${etag}` })
      expect(again.status).toBe(304)
      expect(again.headers.get('etag')).toBe(etag)
      expect(await again.text()).toBe('')
    }
    expect(seen.size).toBe(3)
    const font = await get({ 'accept-encoding': 'br' }, '/assets/font-abc123.woff2')
    expect([font.headers.get('content-encoding'), font.headers.get('vary')]).toEqual([null, null])
    // A copy of an earlier build is not the file.
    await writeFile(join(folder, 'assets', 'index-abc123.js'), 'export {}')
    await utimes(join(folder, 'assets', 'index-abc123.js.br'), 1, 1)
    expect(await (await get({ 'accept-encoding': 'br' })).text()).toBe('export {}')
  })

  test('answers that it is not built', async () => {
    expect(await errorOf(await fetch(url))).toMatchObject({ code: 'not_ready' })
  })
})

describe('health', () => {
  test('alive always; ready with reasons when the agent answers, and not when it is gone', async () => {
    expect((await fetch(`${url}/healthz`)).status).toBe(200)
    const good = await fetch(`${url}/readyz`)
    expect(good.status).toBe(200)
    const { reasons } = readiness.parse(await good.json())
    expect(reasons.map(({ part, ok }) => `${part} ${ok}`)).toEqual([
      'accounts true',
      'sessions true',
      'agent true',
      'engine true',
    ])
    await harness.agent.drop()
    await waitFor(async () => (await fetch(`${url}/readyz`)).status === 503)
    const bad = readiness.parse(await (await fetch(`${url}/readyz`)).json())
    expect(bad.reasons.find(({ part }) => part === 'agent')).toMatchObject({ ok: false })
    expect((await fetch(`${url}/healthz`)).status).toBe(200)
    await harness.agent.listen()
    await waitFor(async () => (await fetch(`${url}/readyz`)).status === 200)
  })

  test('metrics are for this machine or a token', async () => {
    await setUp(harness)
    const local = await fetch(`${url}/metrics`)
    const text = await local.text()
    expect(text).toContain('sandlot_agent_connected 1')
    expect(text).toMatch(
      /sandlot_http_request_duration_seconds_count\{route="\/api\/setup",method="POST",status="200"\} 1/,
    )
    for (const host of ['evil.example', `evil.example:${new URL(url).port}`, 'localhost.evil.example'])
      expect(await statusOf(url, '/metrics', { host })).toBe(403)
    expect(await statusOf(url, '/metrics', { host: `localhost:${new URL(url).port}` })).toBe(200)
    const proxied = await fetch(`${url}/metrics`, { headers: { 'x-forwarded-for': '203.0.113.5' } })
    expect(proxied.status).toBe(403)
    expect(await proxied.text()).toContain('Set SANDLOT_METRICS_TOKEN (16 characters or more)')
    const harness2 = await startHarness({ metricsToken: 'a-metrics-token-of-ours' })
    const headers = (token: string) => ({
      'x-forwarded-for': '203.0.113.5',
      authorization: `Bearer ${token}`,
    })
    expect((await fetch(`${harness2.service.url}/metrics`, { headers: headers('wrong') })).status).toBe(403)
    const allowed = await fetch(`${harness2.service.url}/metrics`, {
      headers: headers('a-metrics-token-of-ours'),
    })
    expect(allowed.status).toBe(200)
    await harness2.close()
  })
})
