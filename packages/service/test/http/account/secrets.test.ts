import { expect, test } from 'vitest'
import { addUser } from '../../support/harness.ts'
import { useHarness } from '../../support/use-harness.ts'

const VALUE = 'a-token-that-nobody-sees-again'

const here = useHarness()

const json = async (response: Promise<Response>): Promise<unknown> => (await response).json()

test('a secret is set, listed by its name alone, replaced and removed, by its owner', async () => {
  const { harness, ann } = here()
  const bob = await addUser(harness, ann, 'bob@example.org')
  expect(await json(ann.get('/api/secrets'))).toEqual({ secrets: [] })
  expect((await ann.put('/api/secrets/TOKEN', { value: VALUE })).status).toBe(204)
  expect((await ann.put('/api/secrets/TOKEN', { value: VALUE })).status).toBe(204)
  const listed = await ann.get('/api/secrets')
  expect(listed.headers.get('cache-control')).toContain('no-store')
  expect(await listed.text()).not.toContain(VALUE)
  expect(await json(ann.get('/api/secrets'))).toEqual({ secrets: [{ name: 'TOKEN', updatedAt: 1 }] })
  expect(await json(bob.get('/api/secrets'))).toEqual({ secrets: [] })
  expect((await bob.delete('/api/secrets/TOKEN')).status).toBe(404)
  expect((await ann.delete('/api/secrets/TOKEN')).status).toBe(204)
  expect((await ann.get('/api/secrets/TOKEN')).status).toBe(404)
})

test('what is not a name or a value is refused, without saying it', async () => {
  const { ann } = here()
  for (const [name, body] of [
    ['1', { value: VALUE }],
    ['a%20b', { value: VALUE }],
    ['x'.repeat(129), { value: VALUE }],
    ['TOKEN', { value: '' }],
    ['TOKEN', { secret: VALUE }],
    ['TOKEN', { value: 'x'.repeat(16_385) }],
  ] as const) {
    const refused = await ann.put(`/api/secrets/${name}`, body)
    expect(refused.status, name).toBe(400)
    expect(await refused.text()).not.toContain(VALUE)
  }
})

test('an API key may look at names, and sets or removes nothing', async () => {
  const { harness, ann } = here()
  const { key } = (await json(ann.post('/api/keys', { name: 'script' }))) as { key: string }
  const url = `${harness.service.url}/api/secrets`
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  expect((await fetch(url, { headers })).status).toBe(200)
  const body = JSON.stringify({ value: VALUE })
  expect((await fetch(`${url}/TOKEN`, { method: 'PUT', headers, body })).status).toBe(403)
  expect((await fetch(`${url}/TOKEN`, { method: 'DELETE', headers })).status).toBe(403)
  expect((await fetch(url)).status).toBe(401)
})
