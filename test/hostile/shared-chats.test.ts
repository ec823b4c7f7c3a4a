/**
 * Access to a chat by each role of a share, over every route and every frame. The service and the agent run as processes,
 * with a real store; `RIGHTS` lists the rights.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { ServerFrame } from '@sandlot/shared/chat/frames'
import { newId } from '@sandlot/shared/base/ids'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type FakeProvider,
  startFakeProvider,
  textAnswer,
  toolCalls,
} from '../../packages/ai-agent/test/support/fake-provider.ts'
import { Tab } from '../../packages/service/test/support/harness.ts'
import { type RunningSandlot, eventually, startSandlot } from '../e2e/processes.ts'
import { LOCAL_PROCESS } from '../config.ts'

type Right = 'read' | 'take_part' | 'approve' | 'own'

/** Users and their rights; without any, the chat does not exist for them. */
const RIGHTS: Record<string, readonly Right[]> = {
  owner: ['read', 'take_part', 'approve', 'own'],
  approver: ['read', 'take_part', 'approve'],
  'approver who watches': ['read', 'approve'],
  participant: ['read', 'take_part'],
  'guest who takes part': ['read', 'take_part'],
  watcher: ['read'],
  'guest who watches': ['read'],
  'former participant': [],
  'whose share has expired': [],
  'guest without a share': [],
  administrator: [],
}
const PEOPLE = Object.keys(RIGHTS)
const GUESTS = PEOPLE.filter((name) => name.startsWith('guest'))
const CHAT = 'shared'
const PASSWORD = 'battery staple horse'

interface Person {
  id: string
  cookie: string
}

let provider: FakeProvider
let sandlot: RunningSandlot
const people = new Map<string, Person>()

const person = (name: string): Person => people.get(name) ?? { id: '', cookie: '' }

function ask(name: string, method: string, path: string, body?: object): Promise<Response> {
  const { cookie } = person(name)
  return fetch(`${sandlot.url}${path}`, {
    method,
    headers: { cookie, origin: sandlot.url, 'content-type': 'application/json' },
    body: body === undefined ? undefined : JSON.stringify(body),
  })
}

async function signedIn(path: string, body: object): Promise<Person> {
  const answer = await ask('', 'POST', path, body)
  if (!answer.ok) throw new Error(`${path}: ${await answer.text()}`)
  const cookie = answer.headers
    .getSetCookie()
    .map((one) => one.split(';')[0])
    .join('; ')
  return { id: ((await answer.json()) as { id: string }).id, cookie }
}

async function share(name: string, more: object): Promise<string> {
  const body = { kind: 'person', targetId: person(name).id, ...more }
  const answer = await ask('owner', 'POST', `/api/sessions/${CHAT}/shares`, body)
  if (!answer.ok) throw new Error(`${name}: ${await answer.text()}`)
  return ((await answer.json()) as { id: string }).id
}

beforeAll(async () => {
  provider = await startFakeProvider()
  sandlot = await startSandlot({
    agent: {
      OPENAI_BASE_URL: provider.baseUrl,
      OPENAI_API_KEY: 'sk-test-canary',
      OPENAI_MODEL: 'scripted',
      ...LOCAL_PROCESS,
      DOCKER_HOST: 'unix:///nonexistent/docker.sock',
    },
  })
  const token = new URL(sandlot.setupUrl).searchParams.get('token')
  const admin = { name: 'Admin', email: 'admin@example.org', password: PASSWORD }
  people.set('administrator', await signedIn('/api/setup', { token, ...admin }))
  for (const [index, name] of PEOPLE.entries()) {
    if (name === 'administrator') continue
    const email = `person${index}@example.org`
    const role = GUESTS.includes(name) ? 'guest' : 'member'
    await ask('administrator', 'POST', '/api/users', { name, email, password: PASSWORD, role })
    people.set(name, await signedIn('/api/sign-in', { email, password: PASSWORD }))
  }
  // A chat with an output and an image of it, whose last call waits for an answer.
  provider.add(
    toolCalls([{ id: 'printed', name: 'run_shell_command', args: { command: 'echo canary-output' } }]),
    textAnswer('It is printed.'),
    toolCalls([{ id: 'waits', name: 'run_shell_command', args: { command: 'touch made' } }]),
  )
  const message = { sessionId: CHAT, message: 'Print it.', mode: 'yolo' }
  const first = await ask('owner', 'POST', '/api/chat', message)
  if (!first.ok) throw new Error(await first.text())
  const waiting = { sessionId: CHAT, message: 'Make it.', mode: 'manual', approvals: 'wait', requestId: 'w' }
  void ask('owner', 'POST', '/api/chat', waiting).catch(() => undefined)
  await eventually('the call to ask', async () => {
    const { approvals } = (await (await ask('owner', 'GET', `/api/sessions/${CHAT}/approvals`)).json()) as {
      approvals: unknown[]
    }
    return approvals.length > 0 ? true : undefined
  })
  await share('approver', { access: 'take_part', mayApprove: true })
  await share('approver who watches', { access: 'watch', mayApprove: true })
  for (const name of ['participant', 'guest who takes part']) await share(name, { access: 'take_part' })
  for (const name of ['watcher', 'guest who watches']) await share(name, { access: 'watch' })
  const ended = await share('former participant', { access: 'take_part', mayApprove: true })
  const revoked = await ask('owner', 'DELETE', `/api/sessions/${CHAT}/shares/${ended}`)
  expect(revoked.status).toBe(204)
  const soon = Date.now() + 300
  await share('whose share has expired', { access: 'take_part', mayApprove: true, expiresAt: soon })
  await sleep(soon - Date.now() + 50)
}, 60_000)

afterAll(async () => {
  await sandlot.stop()
  await provider.close().catch(() => undefined)
})

/** Method, path, required right, body. */
const at = (path: string): string => `/api/sessions/${CHAT}${path}`
const ROUTES: [string, string, Right, object?][] = [
  ['GET', at(''), 'read'],
  ['GET', at('/outputs/printed'), 'read'],
  ['GET', at('/approvals'), 'read'],
  ['GET', at('/prompts/p_x/export'), 'own'],
  ['PATCH', at(''), 'own', { title: 'Renamed' }],
  ['POST', at('/fork'), 'own', { promptId: 'p_x' }],
  ['GET', at('/shares'), 'own'],
  ['POST', at('/shares'), 'own', { kind: 'person', targetId: 'nobody', access: 'watch' }],
  ['DELETE', at('/shares/none'), 'own'],
  ['GET', at('/snapshots'), 'own'],
  ['POST', at('/snapshots'), 'own', { expiresAt: 1 }],
  ['DELETE', at('/snapshots/none'), 'own'],
  ['POST', at('/comments'), 'take_part', { commentId: 'c1', text: 'Hello.' }],
  ['POST', at('/approvals/none'), 'approve', { optionId: 'allow_once' }],
  ['DELETE', at(''), 'own'],
  ['POST', at('/cancel'), 'take_part'],
]

/** Whatever else was wrong with what was asked, it was not the right. */
const NO_RIGHT = [
  'There is no such chat.',
  'You may watch this chat',
  'Only the owner of this chat',
  'Guests take part in chats of others',
]

async function outcome(answer: Response): Promise<'allowed' | 'forbidden' | 'not_found'> {
  const text = answer.status === 204 ? '' : await answer.text()
  if (!NO_RIGHT.some((words) => text.includes(words))) return 'allowed'
  return answer.status === 404 ? 'not_found' : 'forbidden'
}

function expected(name: string, right: Right): 'allowed' | 'forbidden' | 'not_found' {
  const rights = RIGHTS[name] ?? []
  if (rights.includes(right)) return 'allowed'
  return rights.includes('read') ? 'forbidden' : 'not_found'
}

describe('by HTTP', () => {
  test.each(PEOPLE)('%s', async (name) => {
    const list = (await (await ask(name, 'GET', '/api/sessions')).json()) as {
      sessions: { sessionId: string }[]
    }
    const isListed = list.sessions.some(({ sessionId }) => sessionId === CHAT)
    expect(isListed).toBe(expected(name, 'read') === 'allowed')
    const found: Record<string, string> = {}
    const wanted: Record<string, string> = {}
    for (const [method, path, right, body] of ROUTES) {
      // Would end the chat for later rows.
      if (name === 'owner' && (method === 'DELETE' || path.endsWith('/cancel'))) continue
      if (path.endsWith('/cancel') && expected(name, right) === 'allowed') continue
      const answer = await ask(name, method, path, body)
      found[`${method} ${path}`] = await outcome(answer)
      // Guests are refused whatever the chat is, so the answer says nothing of it.
      const isForMembers = path.endsWith('/fork') && GUESTS.includes(name)
      wanted[`${method} ${path}`] = isForMembers ? 'forbidden' : expected(name, right)
    }
    expect(found).toEqual(wanted)
  })

  test('a guest has no chat and no file of their own, and no list of people', async () => {
    const rows: [string, string, object?][] = [
      ['POST', '/api/chat', { message: 'Mine.' }],
      ['POST', '/api/chat', { message: 'Mine.', sessionId: 'mine' }],
      ['GET', '/api/files?path=/workspace'],
      ['GET', '/api/files/content?path=/workspace/made'],
      ['GET', '/api/people?query=a'],
    ]
    for (const name of GUESTS)
      for (const [method, path, body] of rows) {
        const { status } = await ask(name, method, path, body)
        expect([name, method, path, status]).toEqual([name, method, path, 403])
      }
  })
})

/** The first frame that answers; undefined after the time limit. */
async function answerTo(
  tab: Tab,
  frame: object,
  isAnswer: (frame: ServerFrame) => boolean,
): Promise<ServerFrame | undefined> {
  const from = tab.frames.length
  tab.send(frame)
  for (let waited = 0; waited < 1_000; waited += 20) {
    const found = tab.frames.slice(from).find(isAnswer)
    if (found !== undefined) return found
    await sleep(20)
  }
  return undefined
}

const openTab = (name: string): Promise<Tab> =>
  Tab.open(sandlot.url, { cookie: person(name).cookie, origin: sandlot.url })

const FRAMES: [object, Right][] = [
  [{ type: 'ai_chat_resume', after: 0 }, 'read'],
  // A message of another user.
  [{ type: 'ai_chat_unqueue', messageId: 'm_none' }, 'own'],
  [{ type: 'ai_chat_cancel', toolCallId: 'none' }, 'take_part'],
  [{ type: 'ai_chat_approve', toolCallId: 'none', optionId: 'allow_once' }, 'approve'],
  [{ type: 'ai_chat_mode', modeId: 'yolo' }, 'own'],
  [{ type: 'ai_chat_model', model: 'scripted', thoughtLevel: null }, 'own'],
]

describe('by frames', () => {
  test.each(PEOPLE.filter((name) => name !== 'owner'))('%s', async (name) => {
    const tab = await openTab(name)
    const found: Record<string, string> = {}
    const wanted: Record<string, string> = {}
    for (const [frame, right] of FRAMES) {
      const { type } = frame as { type: string }
      const whole = { ...frame, sessionId: CHAT }
      const answer = await answerTo(
        tab,
        whole,
        (one) =>
          one.type === 'ai_chat_error' || (type === 'ai_chat_resume' && one.type === 'ai_chat_caught_up'),
      )
      const message = answer?.type === 'ai_chat_error' ? answer.message : ''
      const isRefused = NO_RIGHT.some((words) => message.includes(words))
      const code = answer?.type === 'ai_chat_error' && answer.code === 'not_found' ? 'not_found' : 'forbidden'
      found[type] = isRefused ? code : 'allowed'
      wanted[type] = expected(name, right)
    }
    expect(found).toEqual(wanted)
    const events = tab.frames.filter((frame) => frame.type === 'ai_chat_event')
    expect(events.length > 0).toBe(expected(name, 'read') === 'allowed')
    // Silence about what somebody without access writes or stops.
    await answerTo(tab, { type: 'ai_chat_typing', sessionId: CHAT }, () => false)
    await tab.close()
  })

  test('a message of who may only watch, or not even that, reaches nobody', async () => {
    const asked = provider.requests.length
    for (const name of PEOPLE.filter((one) => expected(one, 'take_part') !== 'allowed')) {
      const tab = await openTab(name)
      const frame = {
        type: 'ai_chat',
        requestId: newId('r'),
        sessionId: CHAT,
        text: `from ${name}`,
        whenBusy: 'queue',
      }
      const answer = await answerTo(
        tab,
        frame,
        ({ type }) => type === 'ai_chat_error' || type === 'ai_chat_accepted',
      )
      expect([name, answer]).toMatchObject([name, { code: expected(name, 'take_part') }])
      const posted = await ask(name, 'POST', '/api/chat', { sessionId: CHAT, message: `posted by ${name}` })
      expect(posted.ok).toBe(false)
      await tab.close()
    }
    expect(provider.requests.length).toBe(asked)
    const log = await ask('owner', 'GET', at('/approvals'))
    expect(log.status).toBe(200)
  })

  test('a member removed while they watch gets nothing more', async () => {
    const tab = await openTab('watcher')
    await answerTo(
      tab,
      { type: 'ai_chat_resume', sessionId: CHAT, after: 0 },
      ({ type }) => type === 'ai_chat_caught_up',
    )
    await ask('administrator', 'DELETE', `/api/users/${person('watcher').id}?data=keep`)
    const before = tab.frames.length
    await ask('owner', 'POST', at('/comments'), { commentId: 'c3', text: 'The watcher is gone.' })
    await sleep(200)
    expect(JSON.stringify(tab.frames.slice(before))).not.toContain('is gone')
    await tab.close()
  })
})
