import { sessionList } from '@sandlot/shared/chat/chat-api'
import { sessionSummary } from '@sandlot/shared/chat/frames'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { addUser, setUp, startHarness } from '../../support/harness.ts'
import type { Browser, Harness } from '../../support/harness.ts'

let harness: Harness
let ann: Browser
let bob: Browser
const OUTPUT = Buffer.from('line ä one\nline two\n')

beforeEach(async () => {
  harness = await startHarness()
  ann = await setUp(harness)
  bob = await addUser(harness, ann, 'bob@example.org')
  const { id } = (await (await ann.get('/api/me')).json()) as { id: string }
  const { store } = harness.agent
  for (const [index, name] of ['first', 'second', 'third'].entries()) {
    await store.sessions.create({
      id: name,
      userId: id,
      cwd: '/workspace',
      mode: 'manual',
      at: 1_000 + index,
    })
  }
  await store.outputs.append('first', 'c1', 0, OUTPUT)
})

afterEach(() => harness.close())

describe('the list', () => {
  test('is newest first, in pages, of one’s own', async () => {
    const page = sessionList.parse(await (await ann.get('/api/sessions?limit=2')).json())
    expect(page.sessions.map(({ sessionId }) => sessionId)).toEqual(['third', 'second'])
    const rest = sessionList.parse(await (await ann.get(`/api/sessions?limit=2&before=${page.next}`)).json())
    expect(rest.sessions.map(({ sessionId }) => sessionId)).toEqual(['first'])
    expect(rest.next).toBeNull()
    expect(await (await bob.get('/api/sessions')).json()).toEqual({ sessions: [], next: null })
    expect((await ann.get('/api/sessions?limit=0')).status).toBe(400)
    expect((await fetch(`${harness.service.url}/api/sessions`)).status).toBe(401)
  })

  test('is searched by name, of one’s own', async () => {
    await harness.agent.store.log.append('second', [], { title: 'Plans for May' })
    const found = async (who: Browser, title: string) =>
      sessionList
        .parse(await (await who.get(`/api/sessions?title=${encodeURIComponent(title)}`)).json())
        .sessions.map(({ sessionId }) => sessionId)
    expect(await found(ann, ' for may')).toEqual(['second'])
    expect(await found(ann, 'June')).toEqual([])
    expect(await found(bob, 'May')).toEqual([])
    expect((await ann.get('/api/sessions?title=')).status).toBe(400)
  })

  test('one session, and its deletion, are for its owner alone', async () => {
    const mine = sessionSummary.parse(await (await ann.get('/api/sessions/first')).json())
    expect(mine).toMatchObject({ sessionId: 'first', mode: 'manual', running: false, waiting: 0 })
    expect((await bob.get('/api/sessions/first')).status).toBe(404)
    expect((await bob.delete('/api/sessions/first')).status).toBe(404)
    expect((await ann.delete('/api/sessions/first')).status).toBe(204)
    expect((await ann.get('/api/sessions/first')).status).toBe(404)
    expect((await ann.delete('/api/sessions/first')).status).toBe(404)
    expect(harness.agent.received).toEqual(['delete first'])
  })

  test('a new name is given by the agent, for the owner alone', async () => {
    const name = (who: Browser, title: string) =>
      fetch(`${harness.service.url}/api/sessions/first`, {
        method: 'PATCH',
        headers: { cookie: who.cookie, origin: harness.service.url, 'content-type': 'application/json' },
        body: JSON.stringify({ title }),
      })
    expect((await name(ann, '  Plans for May ')).status).toBe(204)
    expect((await name(ann, '   ')).status).toBe(400)
    expect((await name(ann, 'x'.repeat(201))).status).toBe(400)
    expect((await name(bob, 'Mine now')).status).toBe(404)
    expect(harness.agent.received).toEqual(['rename first Plans for May'])
  })

  test('a fork is made by the agent, for the owner alone', async () => {
    const fork = (browser: Browser, body: object) => browser.post('/api/sessions/first/fork', body)
    const made = await fork(ann, { promptId: 'p_1' })
    expect(made.status).toBe(201)
    expect(await made.json()).toEqual({ sessionId: 'first_fork' })
    expect((await fork(ann, { promptId: 'p_1', where: 'before' })).status).toBe(201)
    expect((await fork(ann, {})).status).toBe(400)
    expect((await fork(bob, { promptId: 'p_1' })).status).toBe(404)
    expect(harness.agent.received).toEqual(['fork first p_1 after', 'fork first p_1 before'])
  })

  test('deleting needs the agent, reading does not', async () => {
    await harness.agent.drop()
    expect((await ann.get('/api/sessions')).status).toBe(200)
    const refused = await ann.delete('/api/sessions/first')
    expect(await refused.json()).toMatchObject({ code: 'agent_unavailable' })
  })
})

test('a prompt’s record is a file of JSON, for its owner', async () => {
  const path = '/api/sessions/first/prompts/p_1/export'
  const answer = await ann.get(path)
  expect(answer.headers.get('content-disposition')).toBe('attachment; filename="prompt-p_1.json"')
  expect(await answer.json()).toMatchObject({ promptId: 'p_1' })
  expect((await bob.get(path)).status).toBe(404)
})

describe('a long record', () => {
  const first = '/api/sessions/first/prompts/p_1/export'
  const second = '/api/sessions/second/prompts/p_2/export'
  const PIECES = 2_048
  const PIECE = ' '.repeat(32 * 1024)
  beforeEach(() => {
    // 64 MiB: what no buffers between the agent and the browser hold.
    harness.agent.exportedAfter = Array.from({ length: PIECES }, () => PIECE)
  })

  test('waits for its reader at the agent, and the next one waits for it', async () => {
    const unread = await ann.get(first)
    harness.agent.exportedAfter = []
    const next = ann.get(second)
    for (let n = 0; n < 20; n++) await ann.get('/api/me')
    expect(harness.agent.received).toEqual(['export p_1'])
    if (unread.body === null) throw new Error('no body')
    let bytes = 0
    for await (const piece of unread.body) bytes += piece.length
    expect(bytes).toBeGreaterThan(PIECES * PIECE.length)
    expect(await (await next).json()).toMatchObject({ promptId: 'p_2' })
  })

  test('that is cut off makes room for the next one', async () => {
    const stop = new AbortController()
    const unread = await fetch(`${harness.service.url}${first}`, {
      headers: { cookie: ann.cookie },
      signal: stop.signal,
    })
    harness.agent.exportedAfter = []
    const next = ann.get(second)
    stop.abort()
    await expect(unread.text()).rejects.toThrow()
    expect(await (await next).json()).toMatchObject({ promptId: 'p_2' })
  })
})

describe('an output', () => {
  const path = '/api/sessions/first/outputs/c1'

  test('is its raw bytes, as text that no browser runs', async () => {
    const response = await ann.get(path)
    expect(Buffer.from(await response.arrayBuffer())).toEqual(OUTPUT)
    const header = (name: string) => response.headers.get(name)
    expect(header('content-type')).toBe('text/plain; charset=utf-8')
    expect(header('x-content-type-options')).toBe('nosniff')
    expect(header('content-security-policy')).toBe("default-src 'none'; sandbox")
    expect(header('content-disposition')).toBe('inline; filename="c1.txt"')
    expect(header('content-length')).toBe(String(OUTPUT.length))
    const saved = await ann.get(`${path}?download=1`)
    expect(saved.headers.get('content-disposition')).toBe('attachment; filename="c1.txt"')
  })

  test('is given in ranges', async () => {
    const part = await ann.get(path, { range: 'bytes=5-9' })
    expect(part.status).toBe(206)
    expect(part.headers.get('content-range')).toBe(`bytes 5-9/${OUTPUT.length}`)
    expect(Buffer.from(await part.arrayBuffer())).toEqual(OUTPUT.subarray(5, 10))
    const tail = await ann.get(path, { range: 'bytes=-4' })
    expect(await tail.text()).toBe('two\n')
    const beyond = await ann.get(path, { range: 'bytes=1000-' })
    expect(beyond.status).toBe(416)
    expect(beyond.headers.get('content-range')).toBe(`bytes */${OUTPUT.length}`)
  })

  test('of a large call comes in pieces, whole', async () => {
    const large = Buffer.alloc(3 * 1024 * 1024 + 17, 'abcdefg\n')
    await harness.agent.store.outputs.append('first', 'big', 0, large)
    const response = await ann.get('/api/sessions/first/outputs/big')
    expect(Buffer.from(await response.arrayBuffer()).equals(large)).toBe(true)
  })

  test('is for the owner alone, and not found when there is none', async () => {
    expect((await bob.get(path)).status).toBe(404)
    expect((await ann.get('/api/sessions/first/outputs/c2')).status).toBe(404)
    expect((await ann.get('/api/sessions/second/outputs/c1')).status).toBe(404)
    expect((await fetch(`${harness.service.url}${path}`)).status).toBe(401)
  })
})
