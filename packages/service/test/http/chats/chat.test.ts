import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { chatResponse } from '@sandlot/shared/chat/chat-api'
import { errorBody } from '@sandlot/shared/account/api'
import { sandlotEventOf } from '@sandlot/shared/chat/events'
import { serverFrame } from '@sandlot/shared/chat/frames'
import { uploadedImage } from '@sandlot/shared/chat/images'
import type { ServerFrame } from '@sandlot/shared/chat/frames'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { addUser, makeKey, setUp, startHarness, waitFor } from '../../support/harness.ts'
import type { Browser, Harness } from '../../support/harness.ts'
import { PNG } from '../../support/png.ts'
import { twoCalls } from '../../support/two-calls.ts'

let harness: Harness
let ann: Browser
let authorization: string

beforeEach(async () => {
  harness = await startHarness()
  ann = await setUp(harness)
  authorization = `Bearer ${await makeKey(ann)}`
})

afterEach(() => harness.close())

interface Call {
  headers?: Record<string, string>
  signal?: AbortSignal
}

const chat = (body: object, { headers = {}, signal }: Call = {}): Promise<Response> =>
  fetch(`${harness.service.url}/api/chat`, {
    method: 'POST',
    headers: { authorization, 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
    signal,
  })
const answerOf = async (response: Response) => chatResponse.parse(await response.json())
const errorOf = async (response: Response) => errorBody.parse(await response.json())

/** The frames of an SSE body, with the ids of the messages. */
async function framesOf(response: Response): Promise<{ id: string | undefined; frame: ServerFrame }[]> {
  const blocks = (await response.text()).split('\n\n').filter((block) => /^event:/m.test(block))
  return blocks.map((block) => {
    const field = (name: string) => new RegExp(`^${name}: ?(.*)$`, 'm').exec(block)?.[1]
    const frame = serverFrame.parse(JSON.parse(field('data') ?? ''))
    expect(field('event')).toBe(frame.type)
    return { id: field('id'), frame }
  })
}

describe('as JSON', () => {
  test('an answer names its prompt, and another message may follow that one, or none', async () => {
    harness.agent.script = async (turn) => {
      await turn.say('Yes.')
      return undefined
    }
    const first = await answerOf(await chat({ message: 'one' }))
    const { sessionId } = first
    const second = await answerOf(await chat({ message: 'two', sessionId }))
    const again = await answerOf(await chat({ message: 'two anew', sessionId, follows: first.promptId }))
    await answerOf(await chat({ message: 'one anew', sessionId, follows: null }))
    expect(new Set([first, second, again].map(({ promptId }) => promptId)).size).toBe(3)
    const log = await harness.agent.store.log.read(sessionId)
    const followed = log.flatMap((event) => {
      const happened = sandlotEventOf(event)
      return happened?.type === 'prompt_started' ? [happened.follows] : []
    })
    expect(followed).toEqual([undefined, undefined, first.promptId, null])
  })

  test('answers with the last text, the results in the model’s order, and the usage', async () => {
    harness.agent.script = twoCalls
    const answer = await answerOf(await chat({ message: 'do it', sessionId: 'mine' }))
    expect(answer).toEqual({
      sessionId: 'mine',
      promptId: expect.stringMatching(/^p_/),
      text: 'Done.',
      reason: 'completed',
      stopReason: 'end_turn',
      toolResults: [
        {
          callId: 'c1',
          name: 'tool_1',
          status: 'completed',
          text: 'yes',
          outputUrl: '/api/sessions/mine/outputs/c1',
          truncated: true,
        },
        {
          callId: 'c2',
          name: 'tool_2',
          status: 'failed',
          reason: 'denied',
          text: 'no',
          truncated: false,
        },
      ],
      usage: { input: 20, output: 4 },
    })
  })

  test('makes the caller’s session in mode yolo or the nearest allowed one, and continues it unchanged', async () => {
    await answerOf(await chat({ message: 'one', sessionId: 'mine' }))
    await answerOf(await chat({ message: 'two', sessionId: 'mine' }))
    await answerOf(await chat({ message: 'three', sessionId: 'mine', mode: 'manual' }))
    expect(harness.agent.received.filter((line) => !line.startsWith('load'))).toEqual([
      'new mine default yolo',
      'prompt mine one',
      'new mine default yolo',
      'prompt mine two',
      'new mine manual',
      'mode mine manual',
      'prompt mine three',
    ])
  })

  test('a prompt of a script is unattended; a browser’s cookie gets the default mode', async () => {
    let unattended = false
    harness.agent.script = async (turn) => {
      unattended = turn.unattended
      return 'completed'
    }
    const response = await ann.post('/api/chat', { message: 'hello' })
    const { sessionId, text } = await answerOf(response)
    expect(unattended).toBe(true)
    expect(text).toBe('')
    expect(harness.agent.received[0]).toBe(`new ${sessionId} auto-edit`)
  })

  test('sets the model, its thinking level, and the effect of a failed call', async () => {
    const wishes: unknown[] = []
    harness.agent.script = async (turn) => {
      wishes.push(turn.onError)
      return 'completed'
    }
    const wish = { sessionId: 'mine', model: 'big', thoughtLevel: 'high' }
    await answerOf(await chat({ message: 'one', ...wish, onError: 'stop' }))
    await answerOf(await chat({ message: 'two', ...wish }))
    expect(wishes).toEqual(['stop', undefined])
    expect(harness.agent.received.filter((line) => !line.startsWith('load'))).toEqual([
      'new mine default yolo big high',
      'prompt mine one',
      'new mine default yolo big high',
      'option mine model big',
      'option mine thought_level high',
      'prompt mine two',
    ])
    expect((await chat({ message: 'three', onError: 'explode' })).status).toBe(400)
  })

  test('the same requestId is the same prompt: while it runs, and when it has ended', async () => {
    const go = Promise.withResolvers<void>()
    harness.agent.script = async (turn) => {
      await go.promise
      await turn.say('once')
      return 'completed'
    }
    const body = { message: 'work', sessionId: 'mine', requestId: 'k1' }
    const leaving = new AbortController()
    const first = chat(body, { signal: leaving.signal })
    await waitFor(() => harness.agent.received.includes('prompt mine work'))
    leaving.abort()
    await expect(first).rejects.toThrow()
    go.resolve()
    await waitFor(async () => (await harness.agent.store.sessions.get('mine'))?.runningPromptId === null)
    for (let i = 0; i < 2; i++) expect((await answerOf(await chat(body))).text).toBe('once')
    expect(harness.agent.received).not.toContain('cancel mine')
    const started = (await harness.agent.store.log.read('mine')).filter(
      (event) => event._meta.sandlot.event?.type === 'prompt_started',
    )
    expect(started).toHaveLength(1)
  })

  test('the same requestId with another session answers with the prompt that it made', async () => {
    const first = await answerOf(await chat({ message: 'once', requestId: 'k1' }))
    const again = await answerOf(await chat({ message: 'once', requestId: 'k1', sessionId: 'other' }))
    expect(again).toEqual(first)
  })

  test('a session that is gone when the agent comes back is an error, not a wait for ever', async () => {
    harness.agent.script = (turn) =>
      new Promise((resolve) => {
        turn.cancelled.addEventListener('abort', () => resolve('cancelled'))
      })
    const call = chat({ message: 'work', sessionId: 'mine', requestId: 'k1' })
    await waitFor(() => harness.agent.received.includes('prompt mine work'))
    await waitFor(async () => (await harness.agent.store.log.read('mine')).length === 2)
    await harness.agent.drop()
    await harness.agent.store.sessions.remove('mine')
    await harness.agent.listen()
    expect((await errorOf(await call)).code).toBe('not_found')
  })

  test('a client that leaves while its earlier submission is read disturbs no other', async () => {
    const body = { message: 'once', sessionId: 'mine', requestId: 'k1' }
    await answerOf(await chat(body))
    const go = Promise.withResolvers<void>()
    let loads = 0
    harness.agent.beforeLoad = () => {
      loads++
      return go.promise
    }
    const leaving = new AbortController()
    const call = chat(body, { signal: leaving.signal })
    await waitFor(() => loads === 1)
    leaving.abort()
    await expect(call).rejects.toThrow()
    // The service has noticed; an unhandled rejection would end its process (and fails this run).
    await waitFor(async () => (await fetch(`${harness.service.url}/healthz`)).status === 200)
    await new Promise((resolve) => setTimeout(resolve, 50))
    go.resolve()
    expect((await answerOf(await chat(body))).text).toBe('You said once')
  })

  test('a client that leaves without a requestId stops its prompt', async () => {
    harness.agent.script = (turn) =>
      new Promise((resolve) => {
        turn.cancelled.addEventListener('abort', () => resolve('cancelled'))
      })
    const leaving = new AbortController()
    const call = chat({ message: 'sleep', sessionId: 'mine' }, { signal: leaving.signal })
    await waitFor(() => harness.agent.received.includes('prompt mine sleep'))
    leaving.abort()
    await expect(call).rejects.toThrow()
    await waitFor(() => harness.agent.received.includes('cancel mine'))
  })

  test('survives the loss of the agent in the middle', async () => {
    const go = Promise.withResolvers<void>()
    harness.agent.script = async (turn) => {
      await go.promise
      await turn.say('still')
      return 'completed'
    }
    const call = chat({ message: 'work', sessionId: 'mine' })
    await waitFor(async () => (await harness.agent.store.log.read('mine').catch(() => [])).length >= 2)
    await harness.agent.drop()
    go.resolve()
    await harness.agent.listen()
    const response = await call
    // Lost before or after it was accepted: an answer, or an error that says to ask again. Never a wait for ever.
    if (response.status === 200) expect((await answerOf(response)).text).toBe('still')
    else expect((await errorOf(response)).code).toBe('agent_unavailable')
  })
})

describe('with images', () => {
  const upload = async (): Promise<string> => {
    const headers = { authorization, 'content-type': 'image/png' }
    const body = new Uint8Array(PNG)
    const sent = await fetch(`${harness.service.url}/api/images`, { method: 'POST', headers, body })
    return uploadedImage.parse(await sent.json()).id
  }

  test.each(['what is this?', ''])(
    '“%s” is a message, and is answered again when its image is gone',
    async (message) => {
      const body = { message, images: [await upload()], requestId: 'k1' }
      const first = await answerOf(await chat(body))
      const stored = await harness.agent.store.log.read(first.sessionId)
      expect(JSON.stringify(stored)).toContain(PNG.toString('base64'))
      await rm(join(harness.folder, 'uploads'), { recursive: true })
      expect(await answerOf(await chat(body))).toEqual(first)
      // Another submission needs it.
      expect((await errorOf(await chat({ ...body, requestId: 'k2' }))).code).toBe('not_found')
    },
  )
})

describe('refusals', () => {
  test.each([
    ['no message', {}, 400, 'bad_request'],
    ['an empty message', { message: '' }, 400, 'bad_request'],
    ['an unknown field', { message: 'x', colour: 'blue' }, 400, 'bad_request'],
    ['a bad session id', { message: 'x', sessionId: '../x' }, 400, 'bad_request'],
    ['a bad mode', { message: 'x', mode: 'root' }, 400, 'bad_request'],
    ['a message that is too long', { message: 'x'.repeat(200_001) }, 400, 'bad_request'],
  ])('%s', async (_what, body, status, code) => {
    for (const accept of ['application/json', 'text/event-stream']) {
      const response = await chat(body, { headers: { accept } })
      expect(response.status).toBe(status)
      expect((await errorOf(response)).code).toBe(code)
    }
    expect(harness.agent.received).toEqual([])
  })

  test('no or a wrong key; a foreign page', async () => {
    expect((await chat({ message: 'x' }, { headers: { authorization: 'Bearer sk-sandlot-x' } })).status).toBe(
      401,
    )
    const foreign = await ann.post('/api/chat', { message: 'x' }, { origin: 'https://evil.example' })
    expect(foreign.status).toBe(403)
  })

  test('a foreign session, a busy one, and an agent that is away', async () => {
    await answerOf(await chat({ message: 'one', sessionId: 'mine' }))
    const bob = await addUser(harness, ann, 'bob@example.org')
    const his = { authorization: `Bearer ${await makeKey(bob)}` }
    for (const accept of ['application/json', 'text/event-stream']) {
      const response = await chat({ message: 'x', sessionId: 'mine' }, { headers: { ...his, accept } })
      expect((await errorOf(response)).code).toBe('not_found')
    }
    expect(harness.agent.received.filter((line) => line.startsWith('prompt'))).toEqual(['prompt mine one'])

    const go = Promise.withResolvers<void>()
    harness.agent.script = async () => {
      await go.promise
      return 'completed'
    }
    const first = chat({ message: 'work', sessionId: 'mine' })
    await waitFor(() => harness.agent.received.includes('prompt mine work'))
    expect((await errorOf(await chat({ message: 'more', sessionId: 'mine' }))).code).toBe('busy')
    go.resolve()
    await first
    await harness.agent.drop()
    const away = await chat({ message: 'more', sessionId: 'mine' })
    expect(away.status).toBe(503)
    expect((await errorOf(away)).code).toBe('agent_unavailable')
  })
})

describe('as SSE', () => {
  const accept = 'text/event-stream'

  test('is the chat frames, settled ones with their number, from acceptance to the end', async () => {
    harness.agent.script = async (turn) => {
      turn.live((meta) => ({
        sessionUpdate: 'agent_message_chunk',
        messageId: 'm1',
        content: {
          type: 'text',
          text: 'Do',
        },
        _meta: meta({ offset: 0 }),
      }))
      return twoCalls(turn)
    }
    const response = await chat({ message: 'do it', sessionId: 'mine' }, { headers: { accept } })
    expect(response.headers.get('content-type')).toMatch(/^text\/event-stream/)
    const messages = await framesOf(response)
    expect(messages.at(0)?.frame.type).toBe('ai_chat_accepted')
    expect(messages.at(-1)?.frame.type).toBe('ai_chat_done')
    const ids = messages.flatMap(({ id }) => (id === undefined ? [] : [Number(id)]))
    const stored = await harness.agent.store.log.read('mine')
    expect(ids).toEqual(stored.map((event) => event._meta.sandlot.seq))
    expect(messages.filter(({ frame }) => frame.type === 'ai_chat_event')).toHaveLength(stored.length + 1)
  })

  test('continues after Last-Event-ID with the same requestId, also when the prompt has ended', async () => {
    await answerOf(await chat({ message: 'before', sessionId: 'mine' }))
    harness.agent.script = twoCalls
    const body = { message: 'do it', sessionId: 'mine', requestId: 'k1' }
    const whole = await framesOf(await chat(body, { headers: { accept } }))
    const again = await framesOf(await chat(body, { headers: { accept } }))
    expect(again.map(({ frame }) => frame)).toEqual(whole.map(({ frame }) => frame))
    const rest = await framesOf(await chat(body, { headers: { accept, 'last-event-id': '10' } }))
    const ids = rest.flatMap(({ id }) => id ?? [])
    expect(ids).toEqual(whole.flatMap(({ id }) => id ?? []).filter((id) => Number(id) > 10))
    expect(rest.at(-1)?.frame.type).toBe('ai_chat_done')
  })

  test('a client that does not read is dropped before much waits for it, without a hole, and continues', async () => {
    await harness.restart({ slowReaderBytes: 1024 * 1024 })
    const text = 'x'.repeat(128 * 1024)
    let said = 0
    harness.agent.script = async (turn) => {
      for (; said < 200; said++) await turn.say(text)
      return 'completed'
    }
    const body = { message: 'do it', sessionId: 'mine', requestId: 'k1' }
    const response = await chat(body, { headers: { accept } })
    // The service has let go of the prompt before the client reads anything.
    await waitFor(() => said === 200 && harness.agent.connections === 1)
    const messages = await framesOf(response)
    expect(messages.at(-1)?.frame).toMatchObject({ type: 'ai_chat_error' })
    const ids = messages.flatMap(({ id }) => (id === undefined ? [] : [Number(id)]))
    expect(ids.length).toBeLessThan(200)
    expect(ids).toEqual(ids.map((_id, index) => index + 1))
  })

  test('ends also for a client that has every event already', async () => {
    const body = { message: 'do it', sessionId: 'mine', requestId: 'k1' }
    const whole = await framesOf(await chat(body, { headers: { accept } }))
    const last = whole.findLast(({ id }) => id !== undefined)?.id ?? ''
    const rest = await framesOf(await chat(body, { headers: { accept, 'last-event-id': last } }))
    expect(rest.map(({ frame }) => frame.type)).toEqual(['ai_chat_accepted', 'ai_chat_done'])
  })
})
