import { expect, test } from 'vitest'
import { startHarness } from '../support/harness.ts'
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
  // Nobody has told this one where it is.
  expect((await fetch(`${harness.service.url}/oauth/mcp/client.json`)).ok).toBe(false)
})
