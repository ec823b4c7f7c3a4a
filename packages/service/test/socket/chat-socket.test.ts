import { newId } from '@sandlot/shared/base/ids'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { MAX_FRAME_BYTES } from '@sandlot/shared/chat/frames'
import {
  ANN,
  Tab,
  addUser,
  browser,
  cookieOf,
  makeKey,
  refusedUpgrade,
  setUp,
  startHarness,
  waitFor,
} from '../support/harness.ts'
import type { Browser, Harness } from '../support/harness.ts'
import { DEFAULT_RATES } from '../../src/auth/limits.ts'
import { answering, seqs } from '../support/scripted-agent.ts'

let harness: Harness
let ann: Browser
let bob: Browser
let url: string
const tabs: Tab[] = []

const open = async (user: Browser = ann): Promise<Tab> => {
  const tab = await Tab.of(user, url)
  tabs.push(tab)
  return tab
}

/** A session with one finished prompt. */
const talk = async (tab: Tab, requestId = newId('r'), text = 'hello'): Promise<string> => {
  tab.send({ type: 'ai_chat', requestId, text })
  const { sessionId } = await tab.get('ai_chat_accepted', (frame) => frame.requestId === requestId)
  await tab.get('ai_chat_done', (frame) => frame.sessionId === sessionId)
  return sessionId
}

// One service for all: what each test leaves behind must disturb none of the others.
beforeAll(async () => {
  harness = await startHarness()
  ann = await setUp(harness)
  bob = await addUser(harness, ann, 'bob@example.org')
  url = harness.service.url
})

beforeEach(() => {
  harness.agent.received.length = 0
  harness.agent.script = answering
})

afterEach(async () => {
  for (const tab of tabs.splice(0)) await tab.close()
})

afterAll(() => harness.close())

describe('the upgrade', () => {
  test('is for a cookie from our own page, or an API key from anywhere that is no page', async () => {
    await open()
    const key = await makeKey(ann)
    const tab = await Tab.open(url, { authorization: `Bearer ${key}` })
    tabs.push(tab)
    await tab.settle()
  })

  test.each([
    ['no credentials', () => ({ origin: url }), 401, 'unauthenticated'],
    [
      'a made-up cookie',
      () => ({ origin: url, cookie: 'sandlot.session_token=abc.def' }),
      401,
      'unauthenticated',
    ],
    ['a made-up key', () => ({ authorization: 'Bearer sk-sandlot-nonsense' }), 401, 'unauthenticated'],
    ['another scheme', () => ({ authorization: 'Basic YTpi' }), 401, 'unauthenticated'],
    [
      'a page of somebody else',
      () => ({ origin: 'https://evil.example', cookie: ann.cookie }),
      403,
      'bad_origin',
    ],
    ['origin null', () => ({ origin: 'null', cookie: ann.cookie }), 403, 'bad_origin'],
    [
      'our name on another port',
      () => ({ origin: 'http://127.0.0.1:1', cookie: ann.cookie }),
      403,
      'bad_origin',
    ],
    ['a cookie without origin', () => ({ cookie: ann.cookie }), 403, 'bad_origin'],
  ])('refuses %s', async (_what, headers, status, code) => {
    const refused = await refusedUpgrade(url, headers())
    expect(refused).toMatchObject({
      status,
      body: { code, message: expect.any(String), requestId: expect.any(String) },
    })
  })

  test('refuses a key with a foreign origin, and other addresses', async () => {
    const authorization = `Bearer ${await makeKey(ann)}`
    expect(await refusedUpgrade(url, { authorization, origin: 'https://evil.example' })).toMatchObject({
      status: 403,
    })
    for (const path of ['/elsewhere', '//'])
      expect(await refusedUpgrade(url, { authorization }, path)).toMatchObject({ status: 404 })
  })

  test('closes the sockets of a sign-in that ends, and of a key that is deleted', async () => {
    const key = await makeKey(ann)
    const byKey = await Tab.open(url, { authorization: `Bearer ${key}` })
    const { email, password } = ANN
    const signedIn = await browser(url, '').post('/api/sign-in', { email, password })
    const again = browser(url, cookieOf(signedIn))
    const byCookie = await open(again)
    const other = await open()
    tabs.push(byKey)
    const { keys } = (await (await ann.get('/api/keys')).json()) as { keys: { id: string }[] }
    await ann.delete(`/api/keys/${keys[0]?.id}`)
    await waitFor(() => byKey.closed !== undefined)
    expect(byKey.closed?.code).toBe(4401)
    expect(byCookie.closed).toBeUndefined()
    await again.post('/api/sign-out')
    await waitFor(() => byCookie.closed !== undefined)
    expect(byCookie.closed?.code).toBe(4401)
    await other.settle()
    expect(other.closed).toBeUndefined()
  })
})

describe('bad frames', () => {
  test.each([
    ['text that is not JSON', '{oops', 'invalid_frame'],
    ['JSON that is no object', '[1,2]', 'invalid_frame'],
    ['null', 'null', 'invalid_frame'],
    ['no type', '{}', 'invalid_frame'],
    ['an unknown type', '{"type":"ai_dance","requestId":"r1"}', 'unknown_frame'],
    ['a missing field', '{"type":"ai_chat","requestId":"r1"}', 'invalid_frame'],
    ['a session id with a path', '{"type":"ai_chat_resume","sessionId":"../x","after":0}', 'invalid_frame'],
    ['a negative cursor', '{"type":"ai_chat_resume","sessionId":"x","after":-1}', 'invalid_frame'],
    ['a message without id', '{"type":"ai_chat_unqueue","sessionId":"x","messageId":""}', 'invalid_frame'],
    ['a model that is a number', '{"type":"ai_chat_model","sessionId":"x","model":1}', 'invalid_frame'],
    ['an unknown mode', '{"type":"ai_chat_mode","sessionId":"x","modeId":"root"}', 'invalid_frame'],
    ['an empty message', '{"type":"ai_chat","requestId":"r1","text":""}', 'invalid_frame'],
  ])('answers %s with an error and goes on', async (_what, text, code) => {
    const tab = await open()
    tab.send(text)
    const error = await tab.get('ai_chat_error')
    expect(error.code).toBe(code)
    if (text.includes('r1')) expect(error.requestId).toBe('r1')
    await talk(tab)
    expect(tab.closed).toBeUndefined()
  })

  test('a binary message', async () => {
    const tab = await open()
    tab.socket.send(Buffer.from('{}'), { binary: true })
    expect(await tab.get('ai_chat_error')).toMatchObject({ code: 'invalid_frame' })
    await talk(tab)
  })

  test('a frame over the limit gets an error and 1009, and disturbs no other socket', async () => {
    const other = await open()
    const tab = await open()
    tab.send(JSON.stringify({ type: 'ai_chat', requestId: 'big', text: 'x'.repeat(MAX_FRAME_BYTES) }))
    expect(await tab.get('ai_chat_error')).toMatchObject({ code: 'too_large' })
    await waitFor(() => tab.closed !== undefined)
    expect(tab.closed?.code).toBe(1009)
    await talk(other)
  })

  test('a message over the limit of characters is refused without closing', async () => {
    const tab = await open()
    tab.send({ type: 'ai_chat', requestId: 'long', text: 'x'.repeat(200_001) })
    expect(await tab.get('ai_chat_error')).toMatchObject({ code: 'invalid_frame', requestId: 'long' })
    await talk(tab)
  })
})

describe('a prompt', () => {
  test('is accepted, its events pass unchanged and in order, and it is done', async () => {
    const tab = await open()
    tab.send({ type: 'ai_chat', requestId: newId('r'), text: 'hello', mode: 'manual' })
    const accepted = await tab.get('ai_chat_accepted')
    const done = await tab.get('ai_chat_done')
    const { sessionId, promptId } = accepted
    expect(done).toEqual({ type: 'ai_chat_done', sessionId, promptId, stopReason: 'end_turn' })
    const stored = await harness.agent.store.log.read(sessionId)
    expect(tab.eventsOf(sessionId)).toEqual(JSON.parse(JSON.stringify(stored)))
    expect(seqs(stored)).toEqual([1, 2, 3, 4])
    expect(harness.agent.received).toEqual([`new ${sessionId} manual`, `prompt ${sessionId} hello`])
  })

  test('passes fields of events that this version does not know', async () => {
    const tab = await open()
    harness.agent.script = async (turn) => {
      turn.live((meta) =>
        Object.assign(
          {
            sessionUpdate: 'agent_message_chunk' as const,
            messageId: 'm1',
            content: { type: 'text' as const, text: 'hi' },
            _meta: meta({ offset: 0 }),
          },
          { future: { field: 1 } },
        ),
      )
      return 'completed'
    }
    await talk(tab)
    expect(tab.texts.join()).toContain('"future":{"field":1}')
  })

  test('the same request id is the same prompt, also for a new session and after a reconnect', async () => {
    const tab = await open()
    const before = await harness.agent.store.sessions.list((await me()).id)
    const sessionId = await talk(tab, 'again')
    await tab.close()
    const back = await open()
    back.send({ type: 'ai_chat', requestId: 'again', text: 'hello' })
    const accepted = await back.get('ai_chat_accepted')
    expect(accepted.sessionId).toBe(sessionId)
    // It has seen nothing of the session that it asked for.
    expect(seqs(back.eventsOf(sessionId))).toEqual([1, 2, 3, 4])
    await back.get('ai_chat_done')
    const after = await harness.agent.store.sessions.list((await me()).id)
    expect(after).toHaveLength(before.length + 1)
    expect((await harness.agent.store.log.read(sessionId)).length).toBe(4)
  })

  test('what the agent refuses comes back under the request id', async () => {
    const tab = await open()
    const never = Promise.withResolvers<void>()
    harness.agent.script = async () => {
      await never.promise
      return 'completed'
    }
    tab.send({ type: 'ai_chat', requestId: newId('r'), text: 'wait' })
    const { sessionId } = await tab.get('ai_chat_accepted')
    tab.send({ type: 'ai_chat', requestId: 'two', sessionId, text: 'more', whenBusy: 'refuse' })
    expect(await tab.get('ai_chat_error')).toEqual({
      type: 'ai_chat_error',
      requestId: 'two',
      sessionId,
      code: 'busy',
      message: 'A prompt is running.',
    })
    never.resolve()
    await tab.get('ai_chat_done')
  })

  test('an answer of the agent that is none of the protocol ends it with an error, and is not passed on', async () => {
    const tab = await open()
    const { agent } = harness
    try {
      for (const strange of [{ stopReason: 'bored' }, { stopReason: null }, {}, { _meta: null }]) {
        const belongs = agent.answered
        agent.answered = (result) => {
          agent.answered = belongs
          return 'stopReason' in strange || '_meta' in strange ? { ...result, ...strange } : strange
        }
        const requestId = newId('r')
        tab.send({ type: 'ai_chat', requestId, text: 'hello' })
        const mine = (frame: { requestId?: string | undefined }): boolean => frame.requestId === requestId
        expect(await tab.get('ai_chat_error', mine)).toMatchObject({ code: 'internal' })
        // The stored end is the end; what the answer said is nowhere.
        const { promptId } = await tab.get('ai_chat_accepted', mine)
        const done = await tab.get('ai_chat_done', (frame) => frame.promptId === promptId)
        expect(done).toMatchObject({ stopReason: 'end_turn' })
      }
      expect(tab.texts.join()).not.toContain('bored')
    } finally {
      agent.answered = (result) => result
    }
    await talk(tab)
  })

  test('can be stopped, also from another tab, also one call of it', async () => {
    const tab = await open()
    harness.agent.script = (turn) =>
      new Promise((resolve) => {
        turn.cancelled.addEventListener('abort', () => resolve('cancelled'))
      })
    tab.send({ type: 'ai_chat', requestId: newId('r'), text: 'sleep 300' })
    const { sessionId } = await tab.get('ai_chat_accepted')
    const other = await open()
    other.send({ type: 'ai_chat_cancel', sessionId, toolCallId: 'c1' })
    await waitFor(() => harness.agent.received.includes(`cancel_call ${sessionId} c1`))
    other.send({ type: 'ai_chat_cancel', sessionId })
    expect(await tab.get('ai_chat_done')).toMatchObject({ stopReason: 'cancelled' })
  })

  test('a queued message is withdrawn from any tab; one that was read is a conflict', async () => {
    const tab = await open()
    const sessionId = await talk(tab)
    const other = await open()
    other.send({ type: 'ai_chat_unqueue', sessionId, messageId: 'm_read' })
    expect(await other.get('ai_chat_error')).toMatchObject({ code: 'conflict', sessionId })
    other.send({ type: 'ai_chat_unqueue', sessionId, messageId: 'm_waits' })
    await waitFor(() => harness.agent.received.includes(`unqueue ${sessionId} m_waits`))
    await talk(other)
    expect(other.frames.filter((one) => one.type === 'ai_chat_error')).toHaveLength(1)
  })

  test('an approval is answered from any tab; a second answer is a conflict that names the first', async () => {
    const tab = await open()
    harness.agent.script = async (turn) => {
      await turn.say(await turn.approval('c1'))
      return 'completed'
    }
    tab.send({ type: 'ai_chat', requestId: newId('r'), text: 'do' })
    const { sessionId } = await tab.get('ai_chat_accepted')
    const other = await open()
    const answer = { type: 'ai_chat_approve', sessionId, toolCallId: 'c1', optionId: 'allow' }
    other.send(answer)
    await tab.get('ai_chat_done')
    other.send(answer)
    expect(await other.get('ai_chat_error')).toMatchObject({ code: 'conflict', sessionId })
    expect(JSON.stringify(tab.eventsOf(sessionId))).toContain('"text":"allow"')
  })

  test('continues when its tab is closed', async () => {
    const tab = await open()
    const go = Promise.withResolvers<void>()
    harness.agent.script = async (turn) => {
      await go.promise
      await turn.say('still here')
      return 'completed'
    }
    tab.send({ type: 'ai_chat', requestId: newId('r'), text: 'work' })
    const { sessionId } = await tab.get('ai_chat_accepted')
    await tab.close()
    go.resolve()
    const back = await open()
    back.send({ type: 'ai_chat_resume', sessionId, after: 0 })
    await back.get('ai_chat_done')
    expect(JSON.stringify(back.eventsOf(sessionId))).toContain('still here')
  })

  test('too many are refused, with the time to wait', async () => {
    const strict = await startHarness(
      {},
      { rates: { ...DEFAULT_RATES, prompts: { points: 1, seconds: 600 } } },
    )
    const tab = await Tab.of(await setUp(strict), strict.service.url)
    await talk(tab)
    tab.send({ type: 'ai_chat', requestId: 'two', text: 'more' })
    expect(await tab.get('ai_chat_error')).toMatchObject({
      code: 'rate_limited',
      requestId: 'two',
      message: expect.stringMatching(/Try again in 10 minutes/),
    })
    await tab.close()
    await strict.close()
  })
})

describe('another user', () => {
  test.each([
    ['resume', (sessionId: string) => ({ type: 'ai_chat_resume', sessionId, after: 0 })],
    ['chat', (sessionId: string) => ({ type: 'ai_chat', requestId: 'r', sessionId, text: 'hi' })],
    [
      'chat with a mode',
      (sessionId: string) => ({ type: 'ai_chat', requestId: 'r', sessionId, text: 'hi', mode: 'yolo' }),
    ],
    ['cancel', (sessionId: string) => ({ type: 'ai_chat_cancel', sessionId })],
    ['cancel a call', (sessionId: string) => ({ type: 'ai_chat_cancel', sessionId, toolCallId: 'c1' })],
    [
      'approve',
      (sessionId: string) => ({ type: 'ai_chat_approve', sessionId, toolCallId: 'c1', optionId: 'allow' }),
    ],
    ['take back', (sessionId: string) => ({ type: 'ai_chat_unqueue', sessionId, messageId: 'm_1' })],
    ['mode', (sessionId: string) => ({ type: 'ai_chat_mode', sessionId, modeId: 'yolo' })],
    ['model', (sessionId: string) => ({ type: 'ai_chat_model', sessionId, model: 'big' })],
  ])('%s: not found, and nothing happens', async (_what, frame) => {
    const hers = await open()
    const sessionId = await talk(hers)
    const before = harness.agent.received.filter((line) => !line.startsWith('load'))
    const his = await open(bob)
    his.send(frame(sessionId))
    expect(await his.get('ai_chat_error')).toMatchObject({ code: 'not_found', sessionId })
    expect(his.eventsOf(sessionId)).toEqual([])
    expect(harness.agent.received.filter((line) => !line.startsWith('load'))).toEqual(before)
    await talk(his, 'own')
    expect(hers.frames.filter((one) => one.type === 'ai_chat_error')).toEqual([])
  })

  test('receives nothing of the session list of others', async () => {
    const hers = await open()
    const his = await open(bob)
    const sessionId = await talk(hers)
    await harness.agent.changed(sessionId)
    const { changed } = await hers.get('ai_chat_sessions')
    expect(changed).toMatchObject([{ sessionId, running: false }])
    await his.settle()
    expect(his.frames).toEqual([])
  })
})

async function me(): Promise<{ id: string }> {
  return (await (await ann.get('/api/me')).json()) as { id: string }
}
