/** The deployment as a whole, for administrators. */
import { configurationView } from '@sandlot/shared/admin/configuration'
import { checksView } from '@sandlot/shared/admin/checks'
import { MOST_MEASURED, sandboxesView } from '@sandlot/shared/admin/sandboxes'
import { expect, test } from 'vitest'
import { addUser, makeKey } from '../support/harness.ts'
import { useHarness } from '../support/use-harness.ts'

const here = useHarness()

test('members see none of it', async () => {
  const { harness, ann } = here()
  const bob = await addUser(harness, ann, 'bob@example.org')
  for (const path of ['tools', 'sandboxes', 'sandboxes/use', 'rules', 'configuration'])
    expect((await bob.get(`/api/admin/${path}`)).status).toBe(403)
  expect((await bob.post('/api/admin/sandboxes/u_1/stop', {})).status).toBe(403)
})

test('sandboxes carry the names of their people, and one whose account is gone is still there', async () => {
  const { harness, ann } = here()
  const { account } = (await (await ann.get('/api/me')).json()) as { account?: { id: string } }
  const users = (await (await ann.get('/api/users')).json()) as { users: { id: string; name: string }[] }
  const { id, name } = users.users[0] ?? { id: account?.id ?? '', name: '' }
  harness.agent.sandboxOwners.add(id).add('u_gone')
  const view = sandboxesView.parse(await (await ann.get('/api/admin/sandboxes')).json())
  expect(view.sandboxes).toEqual([
    { userId: id, state: 'stopped', name, email: expect.any(String) },
    { userId: 'u_gone', state: 'stopped' },
  ])
  expect(view).toMatchObject({ warm: 2, ownerless: ['volume-of-nobody'] })
  expect((await ann.post('/api/admin/sandboxes/u_gone/stop', {})).status).toBe(204)
  expect((await ann.post('/api/admin/sandboxes/u_gone/reset', {})).status).toBe(204)
  expect((await ann.post('/api/admin/sandboxes/u_gone/purge', {})).status).toBe(404)
  expect(harness.agent.received.filter((what) => what.endsWith('u_gone'))).toEqual([
    'sandboxes stop u_gone',
    'sandboxes reset u_gone',
  ])
})

test('no more are measured at once than one sees', async () => {
  const { ann } = here()
  const asking = (count: number) =>
    ann.get(`/api/admin/sandboxes/use?${Array.from({ length: count }, (_, at) => `user=u_${at}`).join('&')}`)
  expect((await asking(MOST_MEASURED)).status).toBe(200)
  expect((await asking(MOST_MEASURED + 1)).status).toBe(400)
})

test('rules for everybody are made and revoked by a sign-in, not by a key', async () => {
  const { harness, ann } = here()
  const wanted = { effect: 'deny', match: { shell: 'git push *' } }
  expect((await ann.post('/api/admin/rules', wanted)).status).toBe(201)
  expect((await ann.post('/api/admin/rules', { ...wanted, expiresAt: 1 })).status).toBe(400)
  expect((await ann.delete('/api/admin/rules/rule_1')).status).toBe(204)
  const headers = {
    authorization: `Bearer ${await makeKey(ann)}`,
    'content-type': 'application/json',
  }
  const body = JSON.stringify(wanted)
  const { url } = harness.service
  expect((await fetch(`${url}/api/admin/rules`, { method: 'POST', headers, body })).status).toBe(403)
})

test('the service’s settings are shown also while the agent is away', async () => {
  const { harness, ann } = here()
  const seen = async () => configurationView.parse(await (await ann.get('/api/admin/configuration')).json())
  expect(await seen()).toEqual({ service: [], agent: [], others: null })
  await harness.agent.drop()
  expect(await seen()).toEqual({ service: [], agent: null, others: null })
})

test('checks of both processes are asked for by an administrator, and kept with their time', async () => {
  const { harness, ann } = here()
  const path = '/api/admin/overview/checks'
  const bob = await addUser(harness, ann, 'bob@example.org')
  expect((await bob.post(path, {})).status).toBe(403)
  expect(await (await ann.get(path)).json()).toEqual({ last: null })
  const { last } = checksView.parse(await (await ann.post(path, {})).json())
  const ids = last?.findings.map(({ id }) => id) ?? []
  // The Node of both is one and the same.
  expect(ids.toSorted()).toEqual(['audit-agent', 'audit-service', 'backup', 'data', 'image', 'node'])
  expect(last?.findings.find(({ id }) => id === 'backup')).toMatchObject({
    state: 'failed',
    message: 'none was ever made',
    fix: expect.stringContaining('./sandlot backup'),
  })
  expect(await (await ann.get(path)).json()).toEqual({ last })
  await harness.agent.drop()
  const without = checksView.parse(await (await ann.post(path, {})).json()).last?.findings
  expect(without?.find(({ id }) => id === 'agent')).toMatchObject({ state: 'failed', group: 'must' })
  expect(without?.some(({ id }) => id === 'image')).toBe(false)
})
