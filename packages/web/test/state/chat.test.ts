/** The chat of one tab against a real WebSocket server on the loopback. */
import type { AddressInfo } from 'node:net'
import type { SessionEvent } from '@sandlot/shared/chat/events'
import {
  type ClientFrame,
  clientFrame,
  type ServerFrame,
  type SessionSummary,
} from '@sandlot/shared/chat/frames'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { type WebSocket, WebSocketServer } from 'ws'
import { type KeyValue, memoryStorage } from '../../src/lib/storage.ts'
import { Chat } from '../../src/state/chat.ts'
import { isBusy, modeOf } from '../../src/state/chat-state.ts'
import { SessionLog } from '../fixture/session-log.ts'

let server: WebSocketServer
let port: number
let sockets: WebSocket[]
let received: ClientFrame[]
let log: SessionLog
/** Rows of later pages of the list. */
let lines: SessionSummary[]
let lookedUp: string[]
let answer: (socket: WebSocket, frame: ClientFrame) => void
const chats: Chat[] = []

async function listen(onPort: number): Promise<void> {
  server = new WebSocketServer({ host: '127.0.0.1', port: onPort })
  server.on('connection', (socket) => {
    sockets.push(socket)
    socket.on('message', (data: Buffer) => {
      const frame = clientFrame.parse(JSON.parse(data.toString('utf8')))
      received.push(frame)
      answer(socket, frame)
    })
  })
  await new Promise((resolve) => server.once('listening', resolve))
  port = (server.address() as AddressInfo).port
}

async function shut(): Promise<void> {
  for (const socket of sockets) socket.terminate()
  await new Promise((resolve) => server.close(resolve))
}

const send = (socket: WebSocket, frame: ServerFrame) => socket.send(JSON.stringify(frame))

/**
 * The service's part: a resume answers the log, a message is accepted once and then is in the log.
 */
function serve(socket: WebSocket, frame: ClientFrame): void {
  if (frame.type === 'ai_chat_resume') {
    for (const event of [...log.settled.slice(frame.after), ...log.live]) {
      send(socket, { type: 'ai_chat_event', sessionId: frame.sessionId, event })
    }
    send(socket, { type: 'ai_chat_caught_up', sessionId: frame.sessionId, seq: log.seq })
  }
  if (frame.type === 'ai_chat') {
    const sessionId = frame.sessionId ?? 's_new'
    const events = log.prompt(frame.text, frame.requestId)
    send(socket, { type: 'ai_chat_accepted', requestId: frame.requestId, sessionId, promptId: log.promptId })
    for (const event of events) send(socket, { type: 'ai_chat_event', sessionId, event })
  }
}

beforeEach(async () => {
  sockets = []
  received = []
  log = new SessionLog()
  lines = []
  lookedUp = []
  answer = serve
  await listen(0)
})

afterEach(async () => {
  for (const chat of chats.splice(0)) chat.stop()
  await shut()
})

function open(storage: KeyValue = memoryStorage(), started: string[] = []): Chat {
  const chat = new Chat({
    url: `ws://127.0.0.1:${port}/ws`,
    storage,
    fetchSessions: async () => ({ sessions: [], next: null }),
    fetchSession: async (sessionId) => {
      lookedUp.push(sessionId)
      const found = lines.find((line) => line.sessionId === sessionId)
      if (found === undefined) throw new Error('Chat not found.')
      return found
    },
    onRefused: () => undefined,
    onSessionStarted: (sessionId) => started.push(sessionId),
    schedule: (work) => void setTimeout(work, 0),
  })
  chats.push(chat)
  chat.start()
  return chat
}

const until = (check: () => void) => vi.waitFor(check, { timeout: 8000, interval: 10 })
const texts = (chat: Chat, id: string) =>
  (chat.store.getState().views[id]?.transcript.entries ?? []).flatMap((entry) =>
    entry.type === 'message' ? [entry.text] : [],
  )

test('a first message makes a session, is followed there, and its optimistic copy goes', async () => {
  const started: string[] = []
  const chat = open(memoryStorage(), started)
  const requestId = chat.send(null, 'hello', { mode: 'manual' })
  expect(chat.store.getState().outbox).toHaveLength(1)
  expect(isBusy(chat.store.getState(), null)).toBe(true)
  await until(() => expect(texts(chat, 's_new')).toEqual(['hello']))
  expect(started).toEqual(['s_new'])
  expect(chat.store.getState().outbox).toEqual([])
  expect(received[0]).toEqual({
    type: 'ai_chat',
    requestId,
    text: 'hello',
    mode: 'manual',
    whenBusy: 'steer',
  })
  expect(isBusy(chat.store.getState(), 's_new')).toBe(true)
})

test('a chat that the first page of the list does not have is looked up, and is not taken for one’s own', async () => {
  const owner = { id: 'u_bob', name: 'Bob' }
  const base = { title: 'Old', updatedAt: 1, mode: 'manual', running: false, waiting: 0 } as const
  lines = [{ ...base, sessionId: 's_1', owner, access: 'watch' }]
  log.prompt('go')
  const chat = open()
  const found = () => chat.store.getState().sessions?.map(({ sessionId, owner: whose }) => [sessionId, whose])
  chat.show('s_1')
  await until(() => expect(found()).toEqual([['s_1', owner]]))
  // The list after a lost connection has its first page only.
  for (const socket of sockets) socket.terminate()
  await until(() => expect(lookedUp).toEqual(['s_1', 's_1']))
  await until(() => expect(found()).toEqual([['s_1', owner]]))
  chat.show('s_gone')
  await until(() => expect(chat.store.getState().views['s_gone']?.sync).toBe('fresh'))
  expect(found()).toEqual([['s_1', owner]])
})

test('a lost connection resumes after the last number, and nothing is lost or doubled', async () => {
  log.prompt('go')
  const chat = open()
  chat.show('s_1')
  await until(() => expect(chat.store.getState().views['s_1']?.sync).toBe('fresh'))
  log.text('agent_message_chunk', 'while you were away')
  for (const socket of sockets) socket.terminate()
  await until(() => expect(texts(chat, 's_1')).toEqual(['go', 'while you were away']))
  const resumes = received.filter((frame) => frame.type === 'ai_chat_resume')
  expect(resumes.map((frame) => frame.after)).toEqual([0, 2])
})

test('whether the page is visible is the first thing that every connection says', async () => {
  const chat = open()
  await until(() => expect(chat.store.getState().connection.status).toBe('open'))
  chat.setVisible(true)
  chat.setVisible(true)
  chat.setVisible(false)
  chat.setVisible(true)
  const looks = () => received.flatMap((frame) => (frame.type === 'ai_chat_visible' ? [frame.visible] : []))
  await until(() => expect(looks()).toEqual([true, false, true]))
  chat.show('s_1')
  await until(() => expect(chat.store.getState().views['s_1']?.sync).toBe('fresh'))
  received = []
  for (const socket of sockets) socket.terminate()
  await until(() => expect(received.map(({ type }) => type)).toEqual(['ai_chat_visible', 'ai_chat_resume']))
})

test('a message written while there is no service is sent when it is back, once, as the same one', async () => {
  await shut()
  const chat = open()
  chat.show('s_1')
  const requestId = chat.send('s_1', 'later')
  chat.stopPrompt('s_other')
  chat.setMode('s_1', 'manual')
  chat.setMode('s_1', 'yolo')
  chat.setModel('s_1', { model: 'big', thoughtLevel: null })
  chat.setModel('s_1', { model: 'small' })
  chat.setModel('s_1', { thoughtLevel: 'high' })
  chat.setModel('s_1', {})
  // They are shown before the service knows of them.
  expect(modeOf(chat.store.getState(), 's_1')).toBe('yolo')
  await until(() => expect(chat.store.getState().connection.status).toBe('waiting'))
  await listen(port)
  chat.wake()
  await until(() => expect(texts(chat, 's_1')).toEqual(['later']))
  const said = received.filter((frame) => frame.type === 'ai_chat')
  expect(said.map((frame) => frame.requestId)).toEqual([requestId])
  // First what was missed, then how the message is to be answered, the message, and a Stop. Of two choices the last, part by part.
  expect(received).toMatchObject([
    { type: 'ai_chat_resume' },
    { type: 'ai_chat_mode', modeId: 'yolo' },
    { type: 'ai_chat_model', model: 'small', thoughtLevel: 'high' },
    { type: 'ai_chat', text: 'later' },
    { type: 'ai_chat_cancel', sessionId: 's_other' },
  ])
  expect(chat.store.getState().waiting).toEqual([])
})

test('what was chosen and stopped while there is no service outlives a reload, and is said once', async () => {
  await shut()
  const storage = memoryStorage()
  const first = open(storage)
  first.setMode('s_1', 'manual')
  first.setModel('s_1', { model: 'small' })
  first.send('s_1', 'carefully')
  first.stopPrompt('s_other')
  first.stop()
  const second = open(storage)
  expect(modeOf(second.store.getState(), 's_1')).toBe('manual')
  await until(() => expect(second.store.getState().connection.status).toBe('waiting'))
  await listen(port)
  second.wake()
  await until(() => expect(received.map(({ type }) => type)).toContain('ai_chat_cancel'))
  expect(received.filter(({ type }) => type !== 'ai_chat_resume')).toMatchObject([
    { type: 'ai_chat_mode', sessionId: 's_1', modeId: 'manual' },
    { type: 'ai_chat_model', sessionId: 's_1', model: 'small' },
    { type: 'ai_chat', text: 'carefully' },
    { type: 'ai_chat_cancel', sessionId: 's_other' },
  ])
  expect(storage.get('sandlot.waiting')).toBeNull()
  expect(open(storage).store.getState().waiting).toEqual([])
})

test('a message whose answer got lost is sent again with its id, also after a reload', async () => {
  const storage = memoryStorage()
  answer = (socket, frame) => (frame.type === 'ai_chat' ? undefined : serve(socket, frame))
  const first = open(storage)
  const requestId = first.send(null, 'hello')
  await until(() => expect(received).toHaveLength(1))
  first.stop()
  answer = serve
  const second = open(storage)
  await until(() => expect(texts(second, 's_new')).toEqual(['hello']))
  expect(received.filter((frame) => frame.type === 'ai_chat').map((frame) => frame.requestId)).toEqual([
    requestId,
    requestId,
  ])
  expect(storage.get('sandlot.outbox')).toBeNull()
})

test('Stop before anything came back stops the prompt as soon as it has a name', async () => {
  const waiting: [WebSocket, ClientFrame][] = []
  answer = (socket, frame) => void waiting.push([socket, frame])
  const chat = open()
  chat.send(null, 'hello')
  await until(() => expect(waiting).toHaveLength(1))
  chat.stopPrompt(null)
  answer = serve
  for (const [socket, frame] of waiting) serve(socket, frame)
  await until(() => expect(received).toContainEqual({ type: 'ai_chat_cancel', sessionId: 's_new' }))
})

test('a refused message stays, with the reason, until it is sent again or discarded', async () => {
  answer = (socket, frame) => {
    if (frame.type === 'ai_chat') {
      send(socket, {
        type: 'ai_chat_error',
        requestId: frame.requestId,
        code: 'rate_limited',
        message: 'Too many.',
      })
    }
  }
  const chat = open()
  const requestId = chat.send(null, 'hello', { mode: 'auto-edit' })
  await until(() => expect(chat.store.getState().outbox[0]?.problem?.message).toBe('Too many.'))
  expect(isBusy(chat.store.getState(), null)).toBe(false)
  answer = serve
  chat.sendAgain(requestId, 'manual')
  await until(() => expect(texts(chat, 's_new')).toEqual(['hello']))
  const sent = received.filter((frame) => frame.type === 'ai_chat')
  expect(sent).toMatchObject([
    { requestId, mode: 'auto-edit' },
    { requestId, mode: 'manual' },
  ])
  expect(chat.store.getState().outbox).toEqual([])
})

test('a hole in the numbers asks for what is missing', async () => {
  log.prompt('go')
  const chat = open()
  chat.show('s_1')
  await until(() => expect(chat.store.getState().views['s_1']?.sync).toBe('fresh'))
  log.text('agent_message_chunk', 'missed')
  const later = log.text('agent_message_chunk', 'heard')
  for (const socket of sockets) send(socket, { type: 'ai_chat_event', sessionId: 's_1', event: later })
  await until(() => expect(texts(chat, 's_1')).toEqual(['go', 'missed', 'heard']))
})

test('a service with less than we know (restored from a backup) is believed', async () => {
  log.prompt('go')
  log.text('agent_message_chunk', 'never happened')
  const chat = open()
  chat.show('s_1')
  await until(() => expect(texts(chat, 's_1')).toHaveLength(2))
  log = new SessionLog()
  log.prompt('go')
  for (const socket of sockets) socket.terminate()
  await until(() => expect(texts(chat, 's_1')).toEqual(['go']))
})

test('what a newer service sends is asked for once, then the reader is told to reload', async () => {
  log.prompt('go')
  answer = (socket, frame) => {
    if (frame.type !== 'ai_chat_resume') return
    const [first, ...rest] = log.settled.slice(frame.after)
    const future = {
      sessionUpdate: 'from_the_future',
      _meta: { sandlot: { v: 1, at: 1, seq: frame.after + 1 } },
    }
    if (frame.after === 0 && first !== undefined) {
      send(socket, { type: 'ai_chat_event', sessionId: 's_1', event: first })
    } else {
      socket.send(JSON.stringify({ type: 'ai_chat_event', sessionId: 's_1', event: future }))
      for (const event of rest) send(socket, { type: 'ai_chat_event', sessionId: 's_1', event })
    }
    send(socket, { type: 'ai_chat_caught_up', sessionId: 's_1', seq: log.seq })
  }
  vi.spyOn(console, 'error').mockImplementation(() => undefined)
  const chat = open()
  chat.show('s_1')
  await until(() =>
    expect(chat.store.getState().views['s_1']).toMatchObject({
      sync: 'fresh',
      notifications: [{ code: 'outdated' }],
    }),
  )
  const resumes = received.filter((frame) => frame.type === 'ai_chat_resume')
  expect(resumes.map((frame) => frame.after)).toEqual([0, 1])
})

test('many frames that come together are one change of the state', async () => {
  const chat = open()
  chat.show('s_1')
  await until(() => expect(chat.store.getState().views['s_1']?.sync).toBe('fresh'))
  log.prompt('go')
  const chunks = Array.from({ length: 200 }, (_, i) => log.liveText('m_live', i * 2, 'ab'))
  let changes = 0
  chat.store.subscribe(() => changes++)
  const socket = sockets.at(-1)
  if (socket === undefined) throw new Error('no socket')
  for (const event of [...log.settled, ...chunks])
    send(socket, { type: 'ai_chat_event', sessionId: 's_1', event })
  await until(() => expect(texts(chat, 's_1')).toEqual(['go', 'ab'.repeat(200)]))
  expect(changes).toBeLessThan(60)
})

test('another’s or a deleted session is said to be missing, and an unreadable frame disturbs nothing', async () => {
  answer = (socket, frame) => {
    if (frame.type === 'ai_chat_resume') {
      socket.send('not json')
      socket.send('{"type":"from_the_future"}')
      send(socket, {
        type: 'ai_chat_error',
        sessionId: frame.sessionId,
        code: 'not_found',
        message: 'Chat not found.',
      })
    }
  }
  const complaints = vi.spyOn(console, 'error').mockImplementation(() => undefined)
  const chat = open()
  chat.show('s_1')
  await until(() => expect(chat.store.getState().views['s_1']?.missing).toBe(true))
  expect(complaints).toHaveBeenCalledTimes(2)
  complaints.mockRestore()
})

test('a queued message that was taken back comes to the tab that asked; its optimistic copy goes everywhere', async () => {
  const chat = open()
  const other = open()
  log.prompt('go')
  for (const one of [chat, other]) one.show('s_1')
  const viewOf = (one: Chat) => one.store.getState().views['s_1']
  await until(() => expect([chat, other].map((one) => viewOf(one)?.sync)).toEqual(['fresh', 'fresh']))
  const tell = (event: SessionEvent) => {
    for (const socket of sockets) send(socket, { type: 'ai_chat_event', sessionId: 's_1', event })
  }
  answer = (socket, frame) => {
    if (frame.type === 'ai_chat') {
      // Another device has withdrawn it before this one is notified that it was accepted.
      tell(log.happened({ type: 'message_queued', messageId: 'm_9', text: frame.text, as: 'steer' }))
      tell(log.happened({ type: 'message_unqueued', messageId: 'm_9', why: 'withdrawn' }, 'p_9'))
      const { requestId } = frame
      send(socket, { type: 'ai_chat_accepted', requestId, sessionId: 's_1', promptId: 'p_9' })
    } else if (frame.type === 'ai_chat_unqueue') {
      // About something else, or of an agent that had begun: what the log says counts.
      send(socket, { type: 'ai_chat_error', sessionId: 's_1', code: 'conflict', message: 'Not now.' })
      tell(log.happened({ type: 'message_unqueued', messageId: frame.messageId, why: 'withdrawn' }))
    } else serve(socket, frame)
  }
  other.send('s_1', 'never mind')
  await until(() => expect(viewOf(other)?.back.removed).toEqual(['p_9']))
  await until(() => expect(other.store.getState().outbox).toEqual([]))

  tell(log.happened({ type: 'message_queued', messageId: 'm_10', text: 'in blue', as: 'steer' }))
  await until(() => expect(viewOf(chat)?.transcript.queued).toHaveLength(1))
  chat.takeBack('s_1', 'm_10')
  expect(viewOf(chat)?.back.asked).toEqual(['m_10'])
  await until(() => expect(viewOf(other)?.transcript.queued).toEqual([]))
  await until(() => expect(viewOf(chat)?.back).toMatchObject({ asked: [], got: [{ text: 'in blue' }] }))
  expect(viewOf(other)?.back.got).toEqual([])
  expect(chat.takeGot('s_1')).toMatchObject([{ text: 'in blue' }])
  expect(chat.takeGot('s_1')).toEqual([])
})
