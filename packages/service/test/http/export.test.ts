import { makeMeta } from '@sandlot/shared/chat/event-meta'
import { type SessionEvent, makeSandlotEvent } from '@sandlot/shared/chat/events'
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
  await harness.agent.store.sessions.create({
    id: 's',
    userId: annId,
    cwd: '/workspace',
    mode: 'manual',
    at: 1_000,
  })
})
afterEach(() => harness.close())

const said = (
  sessionUpdate: 'user_message_chunk' | 'agent_message_chunk',
  messageId: string,
  text: string,
  more: object = {},
): SessionEvent => ({
  sessionUpdate,
  messageId,
  content: { type: 'text', text },
  _meta: makeMeta({ promptId: 'p1', ...more }, 2_000),
})
const happened = (event: Parameters<typeof makeSandlotEvent>[0], promptId = 'p1') =>
  makeSandlotEvent(event, { promptId }, 2_000)
const ended = (promptId?: string) =>
  happened({ type: 'prompt_ended', reason: 'completed', stopReason: 'end_turn' }, promptId)

async function aChat(): Promise<void> {
  const picture = { type: 'image', mimeType: 'image/png', data: 'iVBORw0KGgo=' } as const
  await harness.agent.store.log.append(
    's',
    [
      happened({ type: 'prompt_started' }),
      said('user_message_chunk', 'm1', 'Look at <script>alert(1)</script> and **this**'),
      { ...said('user_message_chunk', 'm1_3', ''), content: picture } as SessionEvent,
      said(
        'agent_message_chunk',
        'm2',
        'A [link](javascript:alert(1)) and ![out](https://example.org/x.png)',
      ),
      {
        sessionUpdate: 'tool_call',
        toolCallId: 'c1',
        title: 'Count </details>',
        name: 'run_shell_command',
        kind: 'execute',
        status: 'pending',
        rawInput: { command: 'wc -l x' },
        _meta: makeMeta({ promptId: 'p1' }, 2_000),
      },
      {
        sessionUpdate: 'tool_call_update',
        toolCallId: 'c1',
        status: 'completed',
        rawOutput: { forModel: '7 '.repeat(15_000) },
        _meta: makeMeta({ promptId: 'p1', exit: { code: 0 } }, 2_000),
      },
      ended(),
      makeSandlotEvent(
        { type: 'comment', commentId: 'k1', text: 'Well seen.', mentions: [] },
        { author: { id: 'u_bob', name: 'Bob' } },
        2_000,
      ),
    ],
    { title: 'A chat: “größer”' },
  )
}

async function exported(who: Browser, format: string): Promise<Response> {
  return who.get(`/api/sessions/s/export?format=${format}`)
}

test('as Markdown: authors, comments, commands, and outputs that are cut say so', async () => {
  await aChat()
  const answer = await exported(ann, 'markdown')
  expect(answer.headers.get('content-disposition')).toContain(encodeURIComponent('A chat größer.md'))
  const text = await answer.text()
  expect(text).toMatch(/^# A chat: “größer”\n\n## \S/)
  expect(text.includes('**Count </details>** (Exit 0)\n\n```sh\nwc -l x\n```')).toBe(true)
  expect(text.includes('10,000 more characters of this output are in the chat.')).toBe(true)
  expect(text.includes('> **Bob** (comment, not read by the agent)')).toBe(true)
})

test('as HTML: one file in which nothing runs or loads', async () => {
  await aChat()
  const answer = await exported(ann, 'html')
  expect(answer.headers.get('content-security-policy')).toBe("default-src 'none'; sandbox")
  const text = await answer.text()
  expect(/<script|javascript:|<link|@import|url\(|src="http/i.exec(text)?.[0]).toBeUndefined()
  expect(text.includes('&lt;script&gt;alert(1)&lt;/script&gt; and <strong>this</strong>')).toBe(true)
  expect(text.includes('<img alt="" src="data:image/png;base64,iVBORw0KGgo=">')).toBe(true)
  expect(text.includes('<details><summary><strong>Count &lt;/details&gt;</strong> (Exit 0)</summary>')).toBe(
    true,
  )
  expect(text.includes('img-src data:">')).toBe(true)
})

test('as JSON: every event, in order, with addresses in place of images', async () => {
  await aChat()
  const { events, title } = (await (await exported(ann, 'json')).json()) as {
    title: string
    events: { _meta: { sandlot: { seq: number } }; content?: { uri?: string } }[]
  }
  expect(title).toBe('A chat: “größer”')
  expect(events.map(({ _meta }) => _meta.sandlot.seq)).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
  expect(events[2]?.content).toMatchObject({ data: '', uri: '/api/sessions/s/images/3/0' })
})

test('a second branch is in the document, with a note', async () => {
  await harness.agent.store.log.append('s', [
    happened({ type: 'prompt_started' }),
    said('user_message_chunk', 'm1', 'first try'),
    ended(),
    happened({ type: 'prompt_started', follows: null }, 'p2'),
    said('user_message_chunk', 'm2', 'second try', { promptId: 'p2' }),
    ended('p2'),
  ])
  const text = await (await exported(ann, 'markdown')).text()
  expect(text.includes('second try')).toBe(true)
  expect(text).toMatch(/first try[^]*following continues from an earlier message[^]*second try/)
})

test('who sees the chat may save it, others do not find it; another format is refused', async () => {
  await aChat()
  expect((await exported(bob, 'html')).status).toBe(404)
  const { id: targetId } = (await (await bob.get('/api/me')).json()) as { id: string }
  const share = {
    id: 'x',
    kind: 'person',
    targetId,
    access: 'watch',
    mode: 'manual',
    mayApprove: false,
  } as const
  await harness.agent.store.shares.put('s', { ...share, createdAt: 1, expiresAt: null }, annId)
  expect((await exported(bob, 'markdown')).status).toBe(200)
  expect((await exported(ann, 'pdf')).status).toBe(400)
})
