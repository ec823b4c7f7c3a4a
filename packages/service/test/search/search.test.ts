import { searchResult } from '@sandlot/shared/search/search'
import { makeMeta } from '@sandlot/shared/chat/event-meta'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { addUser, setUp, startHarness } from '../support/harness.ts'
import type { Browser, Harness } from '../support/harness.ts'

let harness: Harness
let ann: Browser
let bob: Browser
let annId: string

beforeEach(async () => {
  harness = await startHarness()
  ann = await setUp(harness)
  bob = await addUser(harness, ann, 'bob@example.org')
  annId = ((await (await ann.get('/api/me')).json()) as { id: string }).id
  const { store } = harness.agent
  await store.sessions.create({ id: 's', userId: annId, cwd: '/workspace', mode: 'manual', at: 1_000 })
  for (const sessionUpdate of ['user_message_chunk', 'agent_message_chunk'] as const)
    await store.log.append('s', [
      {
        sessionUpdate,
        messageId: sessionUpdate,
        content: { type: 'text', text: 'Where do pelicans sleep?' },
        _meta: makeMeta({}, 2_000),
      },
    ])
})

afterEach(() => harness.close())

async function found(who: Browser, query: string) {
  return searchResult.parse(await (await who.get(`/api/search?${query}`)).json())
}

test('says what was found, where, and who wrote it; another person finds it once it is shared', async () => {
  const { hits, next } = await found(ann, 'q=pelican%20sleep&limit=1')
  expect(hits).toEqual([
    {
      sessionId: 's',
      title: null,
      kind: 'answer',
      seq: 2,
      id: 'agent_message_chunk',
      at: 2_000,
      snippet: [
        { text: 'Where do ' },
        { text: 'pelicans', match: true },
        { text: ' ' },
        { text: 'sleep', match: true },
        { text: '?' },
      ],
    },
  ])
  const second = await found(ann, `q=pelican%20sleep&before=${next}`)
  expect(second.hits).toMatchObject([{ kind: 'message', by: { id: annId } }])

  expect((await found(bob, 'q=pelican')).hits).toEqual([])
  const { id: targetId } = (await (await bob.get('/api/me')).json()) as { id: string }
  const share = {
    id: 'x',
    kind: 'person',
    targetId,
    access: 'watch',
    mode: 'manual',
    mayApprove: false,
  } as const
  await harness.agent.store.shares.put('s', { ...share, createdAt: 1, expiresAt: null }, 'ann')
  expect((await found(bob, 'q=pelican')).hits).toHaveLength(2)
})

test('refuses what is no search', async () => {
  const queries = [
    'q=x&kind=nothing',
    'q=x&limit=51',
    `q=${'x'.repeat(301)}`,
    'q=x&since=soon',
    'q=x&chat=a/b',
  ]
  for (const query of queries) {
    const answer = await ann.get(`/api/search?${query}`)
    expect([query, answer.status]).toEqual([query, 400])
    expect(await answer.json()).toMatchObject({ code: 'bad_request' })
  }
})
