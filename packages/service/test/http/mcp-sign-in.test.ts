import { expect, test } from 'vitest'
import { addUser, startHarness } from '../support/harness.ts'
import { useHarness } from '../support/use-harness.ts'

const here = useHarness()

test('who is back from a sign-in at an MCP server brings the answer to the agent, as themselves, and reads how it went', async () => {
  const { harness, ann } = here()
  const page = await ann.get('/oauth/mcp?code=c1&state=s1')
  expect(page.status).toBe(200)
  expect(page.headers.get('content-type')).toContain('text/html')
  expect(page.headers.get('cache-control')).toBe('no-store')
  expect(page.headers.get('referrer-policy')).toBe('no-referrer')
  expect(await page.text()).toContain('calendar is connected')
  expect(harness.agent.received.at(-1)).toMatch(/^mcp_sign_in \S+ code=c1&state=s1$/)
})

test('from the list of servers one is brought back there, once, and told on a page what went wrong', async () => {
  const { harness, ann } = here()
  harness.agent.mcpServers = () => ({ url: 'https://login.example.org/authorize?state=s1' })
  const begun = await ann.post('/api/mcp-servers/m_1/sign-in', {})
  expect(await begun.json()).toEqual({ url: 'https://login.example.org/authorize?state=s1' })
  const kept = begun.headers.getSetCookie().find((cookie) => cookie.startsWith('sandlot_mcp_from='))
  expect(kept).toMatch(/Path=\/oauth\/mcp; HttpOnly; SameSite=Lax/)
  const cookie = `${ann.cookie}; ${kept?.split(';')[0]}`
  const back = (query: string) =>
    fetch(`${harness.service.url}/oauth/mcp?${query}`, { headers: { cookie }, redirect: 'manual' })
  const done = await back('code=c1&state=s1')
  expect([done.status, done.headers.get('location')]).toEqual([303, '/settings/servers?connected=calendar'])
  expect(done.headers.getSetCookie().join()).toContain('sandlot_mcp_from=; Max-Age=0')
  const refused = await back('error=access_denied&state=s1')
  expect([refused.status, await refused.text()]).toEqual([
    400,
    expect.stringContaining('href="/settings/servers"'),
  ])
})

test('a person’s own servers are theirs to change on the page, those of the deployment an administrator’s', async () => {
  const { harness, ann } = here()
  const bob = await addUser(harness, ann, 'bob@example.org')
  const server = { name: 'notes', connection: { kind: 'http', url: 'https://notes.example.org/mcp' } }
  expect((await bob.get('/api/mcp-servers')).status).toBe(200)
  expect((await bob.post('/api/mcp-servers', server)).status).toBe(201)
  expect((await bob.get('/api/admin/mcp-servers')).status).toBe(403)
  expect((await bob.post('/api/admin/mcp-servers', server)).status).toBe(403)
  expect((await ann.put('/api/admin/mcp-servers/m_1', { ...server, revision: 1 })).status).toBe(200)
  const asked = harness.agent.received.filter((line) => line.startsWith('mcp_servers')).slice(-3)
  expect(asked.map((line) => line.split(' ').slice(2).join(' '))).toEqual([
    'own list',
    'own put',
    'deployment put',
  ])
  for (const [change, words] of [
    [{ name: 'a b' }, 'A server’s name is'],
    [{ connection: { kind: 'http', url: 'ftp://x' } }, 'begins with http:// or https://'],
    [{ connection: { kind: 'deployment', command: 'sh' } }, 'connection.kind'],
    [{ values: { named: { 'X-Key': 'secret-value'.repeat(1_000) } } }, 'values.named'],
  ] as const) {
    const refused = await bob.post('/api/mcp-servers', { ...server, ...change })
    expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining(words)])
  }
  const { id } = (await (await bob.get('/api/me')).json()) as { id: string }
  expect((await ann.patch(`/api/users/${id}`, { role: 'guest' })).status).toBe(200)
  expect((await bob.get('/api/mcp-servers')).status).toBe(403)
})

test('an error is answered as text', async () => {
  const { ann } = here()
  const page = await ann.get('/oauth/mcp?error=access_denied&state=s1')
  expect(page.status).toBe(400)
  expect(await page.text()).toContain('It was &lt;b&gt;not&lt;/b&gt; connected.')
})

test('a caller that is not signed in, or an API key, finishes nothing', async () => {
  const { harness, ann } = here()
  const url = `${harness.service.url}/oauth/mcp?code=c1&state=s1`
  expect((await fetch(url)).status).toBe(401)
  const { key } = (await (await ann.post('/api/keys', { name: 'script' })).json()) as { key: string }
  expect((await fetch(url, { headers: { authorization: `Bearer ${key}` } })).status).toBe(403)
  expect(harness.agent.received.filter((line) => line.startsWith('mcp_sign_in'))).toEqual([])
})

test('authorization servers may fetch the client document, from the public address alone', async () => {
  const { harness } = here()
  const publicUrl = 'https://sandlot.example.org'
  const open = await startHarness({ publicUrl }, {}, false)
  const port = /"port":(\d+)/.exec(open.logLines.join('\n'))?.[1] ?? ''
  const answer = await fetch(`http://127.0.0.1:${port}/oauth/mcp/client.json`)
  expect(answer.headers.get('content-type')).toContain('application/json')
  expect(await answer.json()).toMatchObject({
    client_id: `${publicUrl}/oauth/mcp/client.json`,
    redirect_uris: [`${publicUrl}/oauth/mcp`],
    token_endpoint_auth_method: 'none',
  })
  await open.close()
  // This one was not given its address.
  expect((await fetch(`${harness.service.url}/oauth/mcp/client.json`)).ok).toBe(false)
})
