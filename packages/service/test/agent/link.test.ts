/** The one connection for requests: what one user sends does not stand before another's. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { errorBody } from '@sandlot/shared/account/api'
import type { Replica } from '@sandlot/storage/replicas/replicas'
import { expect, test } from 'vitest'
import { AgentReplicas } from '../../src/agent/agent-replicas.ts'
import { makeLog } from '../../src/log.ts'
import { addUser, waitFor } from '../support/harness.ts'
import { useHarness } from '../support/use-harness.ts'

const now = useHarness()

test('of one user eight requests are at the agent; others’ and the user’s own approvals do not wait behind the rest', async () => {
  const { harness, ann } = now()
  const bob = await addUser(harness, ann, 'bob@example.org')
  const { id } = (await (await ann.get('/api/me')).json()) as { id: string }
  const { files } = harness.agent
  const answer = files.answer.bind(files)
  const released = Promise.withResolvers<void>()
  let here = 0
  let most = 0
  files.answer = async (userId, ask) => {
    if (userId !== id) return answer(userId, ask)
    most = Math.max(most, ++here)
    await released.promise
    here--
    return answer(userId, ask)
  }
  const many = Array.from({ length: 40 }, () => ann.get('/api/files?path='))
  await waitFor(() => here === 8)
  expect((await bob.get('/api/files?path=')).status).toBe(200)
  expect((await ann.get('/api/me')).status).toBe(200)
  const answered = await ann.post('/api/sessions/none/approvals/c1', { optionId: 'allow_once' })
  expect(errorBody.parse(await answered.json()).code).toBe('not_found')
  released.resolve()
  for (const response of await Promise.all(many)) expect(response.status).toBe(200)
  expect(most).toBe(8)
})

test('a link that a request finds is of everybody: what becomes of it is in no request', async () => {
  const context = new AsyncLocalStorage<string>()
  const seen: unknown[] = []
  const log = makeLog(
    'debug',
    (text) => text,
    (line) => void (line.includes('"replica":"a"') && seen.push(context.getStore())),
  )
  const away = { url: 'ws+unix:///nowhere.sock:/acp' }
  let list: Replica[] = []
  const registry = {
    find: async () => ({ list: async () => list, ownerOf: async () => undefined }),
    ownerOf: async () => undefined,
    token: undefined,
    otherwise: away,
  }
  const options = { log, onSessionChanged: () => undefined, onConnected: () => undefined }
  const agents = new AgentReplicas(registry, options)
  await agents.lookAgain()
  list = [{ id: 'a', ...away, version: '1', draining: false, living: true, people: 0 }]
  await context.run('a request', () => agents.lookAgain())
  await waitFor(() => seen.length > 0)
  expect(new Set(seen)).toEqual(new Set([undefined]))
  await agents.close()
})
