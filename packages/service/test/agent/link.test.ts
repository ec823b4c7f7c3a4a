/** The one connection for requests: what one user sends does not stand before another's. */
import { errorBody } from '@sandlot/shared/api'
import { expect, test } from 'vitest'
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
