/** Answers to approvals and a Stop, without a browser. */
import { chatResponse } from '@sandlot/shared/chat/chat-api'
import { errorBody } from '@sandlot/shared/account/api'
import { waitingApprovals } from '@sandlot/shared/chat/pending'
import { pendingApprovalList } from '@sandlot/shared/chat/pending-approvals'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Tab, addUser, makeKey, setUp, startHarness, waitFor } from '../support/harness.ts'
import type { Browser, Harness } from '../support/harness.ts'
import type { Script, Turn } from '../support/scripted-agent.ts'

let harness: Harness
let ann: Browser
let authorization: string

beforeEach(async () => {
  harness = await startHarness()
  ann = await setUp(harness)
  authorization = `Bearer ${await makeKey(ann)}`
})

afterEach(() => harness.close())

const send = (method: string, path: string, body?: object, headers: Record<string, string> = {}) =>
  fetch(harness.service.url + path, {
    method,
    headers: { authorization, 'content-type': 'application/json', ...headers },
    body: body === undefined ? undefined : JSON.stringify(body),
  })
const chat = (body: object, headers: Record<string, string> = {}) =>
  send('POST', '/api/chat', { sessionId: 'mine', ...body }, headers)
const codeOf = async (response: Response) => errorBody.parse(await response.json()).code
const pendingIn = async (sessionId: string) => {
  const response = await send('GET', `/api/sessions/${sessionId}/approvals`)
  return pendingApprovalList.parse(await response.json()).approvals
}

const OPTIONS = [
  { optionId: 'allow_once', name: 'Allow', kind: 'allow_once' as const },
  { optionId: 'reject_once', name: 'Deny', kind: 'reject_once' as const },
]
const announce = (turn: Turn): Promise<void> =>
  turn.settle((meta) => ({
    sessionUpdate: 'tool_call',
    toolCallId: 'c1',
    title: 'rm -r build',
    name: 'run_shell_command',
    kind: 'execute',
    status: 'pending',
    rawInput: { command: 'rm -r build' },
    _meta: meta({ turn: 1 }),
  }))

/** Asks about one call, and says what was answered. */
const asking: Script = async (turn) => {
  await announce(turn)
  const answered = turn.approval('c1')
  await turn.happen({ type: 'approval_asked', toolCallId: 'c1', options: OPTIONS, expiresAt: 99 })
  const optionId = await answered
  await turn.happen({ type: 'approval_answered', toolCallId: 'c1', optionId, allowed: true, by: 'user' })
  await turn.settle((meta) => ({
    sessionUpdate: 'tool_call_update',
    toolCallId: 'c1',
    status: 'completed',
    rawOutput: { forModel: optionId },
    _meta: meta({ turn: 1 }),
  }))
  await turn.say(`answered ${optionId}`)
  return 'completed'
}

describe('approvals: "wait"', () => {
  test('what asks is listed, waits, and is answered; the message has its answer', async () => {
    harness.agent.script = asking
    const answer = chat({ message: 'clean up', approvals: 'wait' })
    await waitFor(async () => (await pendingIn('mine').catch(() => [])).length === 1)
    expect(await pendingIn('mine')).toEqual([
      {
        callId: 'c1',
        name: 'run_shell_command',
        kind: 'execute',
        title: 'rm -r build',
        arguments: { command: 'rm -r build' },
        options: OPTIONS,
        askedAt: expect.any(Number),
        expiresAt: 99,
      },
    ])
    const given = await send('POST', '/api/sessions/mine/approvals/c1', { optionId: 'allow_once' })
    expect(given.status).toBe(204)
    expect(chatResponse.parse(await (await answer).json()).text).toBe('answered allow_once')
    expect(await pendingIn('mine')).toEqual([])
    const late = await send('POST', '/api/sessions/mine/approvals/c1', { optionId: 'allow_once' })
    expect([late.status, await codeOf(late)]).toEqual([409, 'conflict'])
  })

  test('as events of the stream', async () => {
    harness.agent.script = asking
    const response = await chat({ message: 'clean up', approvals: 'wait' }, { accept: 'text/event-stream' })
    let text = ''
    let answered = false
    for await (const piece of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += piece
      if (answered || !text.includes('"approval_asked"')) continue
      answered = true
      await send('POST', '/api/sessions/mine/approvals/c1', { optionId: 'reject_once' })
    }
    expect(text).toContain('answered reject_once')
    expect(text).toContain('event: ai_chat_done')
  })

  test('makes the prompt an attended one, and a new chat has the deployment’s mode', async () => {
    const seen: boolean[] = []
    harness.agent.script = async (turn) => {
      seen.push(turn.unattended)
      return 'completed'
    }
    await chat({ message: 'one', sessionId: 'a', approvals: 'wait' })
    await chat({ message: 'two', sessionId: 'b', approvals: 'deny' })
    await chat({ message: 'three', sessionId: 'c' })
    expect(seen).toEqual([false, true, true])
    expect(harness.agent.received.filter((line) => line.startsWith('new'))).toEqual([
      'new a auto-edit',
      'new b default yolo',
      'new c default yolo',
    ])
    expect((await chat({ message: 'x', approvals: 'allow' })).status).toBe(400)
  })
})

test('what waits in all chats is one list: one’s own, and of others’ those in which one may answer', async () => {
  harness.agent.script = asking
  const bob = await addUser(harness, ann, 'bob@example.org')
  const { id } = (await (await bob.get('/api/me')).json()) as { id: string }
  const both = ['mine', 'other'].map((sessionId) =>
    chat({ message: 'clean up', sessionId, approvals: 'wait' }),
  )
  const all = async (who: Browser) => {
    const { approvals, more } = waitingApprovals.parse(await (await who.get('/api/approvals')).json())
    expect(more).toBe(false)
    return approvals.map(({ sessionId, callId, owner }) => [sessionId, callId, owner?.name])
  }
  await waitFor(async () => (await all(ann)).length === 2)
  expect(new Set((await all(ann)).map(([sessionId]) => sessionId))).toEqual(new Set(['mine', 'other']))
  expect(await all(bob)).toEqual([])
  const share = {
    kind: 'person',
    targetId: id,
    access: 'watch',
    mode: 'manual',
    createdAt: 1,
    expiresAt: null,
  } as const
  await harness.agent.store.shares.put('mine', { ...share, id: 'sh_1', mayApprove: true }, 'u')
  await harness.agent.store.shares.put('other', { ...share, id: 'sh_2', mayApprove: false }, 'u')
  expect(await all(bob)).toEqual([['mine', 'c1', 'Ann']])
  for (const sessionId of ['mine', 'other'])
    await send('POST', `/api/sessions/${sessionId}/approvals/c1`, { optionId: 'allow_once' })
  await Promise.all(both)
  expect(await all(ann)).toEqual([])
  expect((await fetch(`${harness.service.url}/api/approvals`)).status).toBe(401)
})

test('a changed call goes to the agent as it is, within its bounds', async () => {
  harness.agent.script = asking
  const answer = chat({ message: 'clean up', approvals: 'wait' })
  await waitFor(async () => (await pendingIn('mine').catch(() => [])).length === 1)
  const path = '/api/sessions/mine/approvals/c1'
  const large = { optionId: 'allow_once', input: { command: 'x'.repeat(500_000) } }
  expect((await send('POST', path, large)).status).toBe(400)
  expect((await send('POST', path, { optionId: 'allow_once', input: 'rm' })).status).toBe(400)
  const given = await send('POST', path, { optionId: 'allow_once', input: { command: 'rm -r build/tmp' } })
  expect(given.status).toBe(204)
  await answer
  expect(harness.agent.received).toContain(
    'approve c1 allow_once and no rule with {"command":"rm -r build/tmp"}',
  )
})

test('a changed call keeps the digits of a number that JavaScript would change', async () => {
  harness.agent.script = asking
  const answer = chat({ message: 'clean up', approvals: 'wait' })
  await waitFor(async () => (await pendingIn('mine').catch(() => [])).length === 1)
  const given = await fetch(`${harness.service.url}/api/sessions/mine/approvals/c1`, {
    method: 'POST',
    headers: { authorization, 'content-type': 'application/json' },
    body: '{"optionId":"allow_once","input":{"id":1234567890123456789}}',
  })
  expect(given.status).toBe(204)
  await answer
  expect(harness.agent.received).toContain(
    'approve c1 allow_once and no rule with {"id":{"sandlot/number":"1234567890123456789"}}',
  )
})

describe('an answer', () => {
  test('of an API key makes no rule, on a socket neither; one of a person may', async () => {
    await chat({ message: 'hello' })
    const answer = { optionId: 'allow_always' }
    await send('POST', '/api/sessions/mine/approvals/c1', answer)
    await ann.post('/api/sessions/mine/approvals/c2', answer)
    const tab = await Tab.open(harness.service.url, { authorization })
    tab.send({ type: 'ai_chat_approve', sessionId: 'mine', toolCallId: 'c3', ...answer })
    await tab.get('ai_chat_error')
    await tab.close()
    expect(harness.agent.received.filter((line) => line.startsWith('approve'))).toEqual([
      'approve c1 allow_always and no rule',
      'approve c2 allow_always',
      'approve c3 allow_always and no rule',
    ])
  })

  test('is of one’s own sessions only, and has its shape', async () => {
    await chat({ message: 'hello' })
    const bob = await addUser(harness, ann, 'bob@example.org')
    const his = { authorization: `Bearer ${await makeKey(bob)}` }
    const path = '/api/sessions/mine/approvals'
    expect((await send('GET', path, undefined, his)).status).toBe(404)
    expect((await send('POST', `${path}/c1`, { optionId: 'allow_once' }, his)).status).toBe(404)
    expect((await send('POST', '/api/sessions/mine/cancel', undefined, his)).status).toBe(404)
    expect((await send('POST', `${path}/c1`, {})).status).toBe(400)
    expect((await send('POST', `${path}/c1`, { optionId: 'a', always: true })).status).toBe(400)
    expect(harness.agent.received.filter((line) => /^(approve|cancel)/.test(line))).toEqual([])
  })
})

test('a prompt is stopped; where none runs that is no error', async () => {
  harness.agent.script = (turn) =>
    new Promise((resolve) => turn.cancelled.addEventListener('abort', () => resolve('cancelled')))
  const answer = chat({ message: 'sleep', requestId: 'k1' })
  await waitFor(() => harness.agent.received.includes('prompt mine sleep'))
  expect((await send('POST', '/api/sessions/mine/cancel')).status).toBe(204)
  expect(chatResponse.parse(await (await answer).json()).reason).toBe('cancelled')
  expect((await send('POST', '/api/sessions/mine/cancel')).status).toBe(204)
})
