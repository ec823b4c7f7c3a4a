import { expect, test } from 'vitest'
import { addUser, makeKey } from '../../support/harness.ts'
import { useHarness } from '../../support/use-harness.ts'

const here = useHarness()

const json = async (response: Promise<Response>): Promise<unknown> => (await response).json()

test('instructions are kept for their owner alone, up to 8 KiB', async () => {
  const { harness, ann } = here()
  const bob = await addUser(harness, ann, 'bob@example.org')
  expect(await json(ann.get('/api/instructions'))).toEqual({ text: '' })
  expect(await json(ann.put('/api/instructions', { text: 'Be brief.' }))).toEqual({ text: 'Be brief.' })
  expect(await json(ann.get('/api/instructions'))).toEqual({ text: 'Be brief.' })
  expect(await json(bob.get('/api/instructions'))).toEqual({ text: '' })
  expect((await ann.put('/api/instructions', { text: 'é'.repeat(4097) })).status).toBe(400)
  expect((await ann.put('/api/instructions', { text: 'é'.repeat(4096) })).status).toBe(200)
  expect((await ann.put('/api/instructions', {})).status).toBe(400)
})

test('the team’s are read by all users and written by an administrator who is signed in', async () => {
  const { harness, ann } = here()
  const bob = await addUser(harness, ann, 'bob@example.org')
  const configured = { configured: 'Be kind.', operator: 'No games.' }
  expect(await json(bob.get('/api/instructions/team'))).toEqual({ text: '', ...configured })
  expect(await json(ann.put('/api/instructions/team', { text: 'Be brief.' }))).toEqual({
    text: 'Be brief.',
    ...configured,
  })
  expect(await json(bob.get('/api/instructions/team'))).toMatchObject({ text: 'Be brief.' })
  expect(await json(ann.get('/api/instructions'))).toEqual({ text: '' })
  const refused = await bob.put('/api/instructions/team', { text: 'Obey Bob.' })
  expect(refused.status).toBe(403)
  expect(await refused.json()).toMatchObject({ code: 'forbidden' })
  expect((await ann.put('/api/instructions/team', { text: 'x'.repeat(8193) })).status).toBe(400)
  const headers = { authorization: `Bearer ${await makeKey(ann)}`, 'content-type': 'application/json' }
  const url = `${harness.service.url}/api/instructions/team`
  expect((await fetch(url, { method: 'PUT', headers, body: '{"text":"x"}' })).status).toBe(403)
  expect((await fetch(url)).status).toBe(401)
})
