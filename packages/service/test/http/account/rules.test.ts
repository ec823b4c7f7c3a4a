import { rule } from '@sandlot/shared/chat/rules'
import { ruleList } from '@sandlot/shared/account/rules-api'
import { expect, test } from 'vitest'
import { type Browser, addUser, makeKey } from '../../support/harness.ts'
import { useHarness } from '../../support/use-harness.ts'

const here = useHarness()

const own = async (someone: Browser) => ruleList.parse(await (await someone.get('/api/rules')).json()).rules

test('rules are made, listed, tried and revoked by their owner alone', async () => {
  const { harness, ann } = here()
  const bob = await addUser(harness, ann, 'bob@example.org')
  const wanted = { effect: 'deny', match: { shell: 'git push *' } }
  const made = await ann.post('/api/rules', wanted)
  expect(made.status).toBe(201)
  const { id } = rule.parse(await made.json())
  expect(await own(ann)).toMatchObject([wanted])
  expect(await own(bob)).toEqual([])
  expect(await (await ann.post('/api/rules/preview', wanted)).json()).toEqual({
    looked: 1,
    changed: [],
    changedCount: 0,
  })
  expect((await bob.delete(`/api/rules/${id}`)).status).toBe(404)
  expect((await ann.delete(`/api/rules/${id}`)).status).toBe(204)
  expect(await own(ann)).toEqual([])
})

test('without a sign-in nothing; a key reads, and leaves no rule behind; a body that is none is refused', async () => {
  const { harness, ann } = here()
  const { url } = harness.service
  expect((await fetch(`${url}/api/rules`)).status).toBe(401)
  const headers = { authorization: `Bearer ${await makeKey(ann)}`, 'content-type': 'application/json' }
  expect((await fetch(`${url}/api/rules`, { headers })).status).toBe(200)
  const body = JSON.stringify({ effect: 'allow', match: { tool: '*' } })
  expect((await fetch(`${url}/api/rules`, { method: 'POST', headers, body })).status).toBe(403)
  expect((await fetch(`${url}/api/rules/x`, { method: 'DELETE', headers })).status).toBe(403)
  for (const wrong of [
    {},
    { effect: 'allow', match: {} },
    { effect: 'allow', match: { shell: 'a', tool: 'b' } },
    { effect: 'may', match: { shell: 'a' } },
  ])
    expect((await ann.post('/api/rules', wrong)).status).toBe(400)
})
