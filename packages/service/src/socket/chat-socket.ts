/**
 * One browser's WebSocket: frames in and out, and the two ways a peer can misbehave (too large, too
 * slow).
 */
import type { Duplex } from 'node:stream'
import { toErrorBody } from '@sandlot/shared/base/errors'
import { MAX_FRAME_BYTES } from '@sandlot/shared/chat/frames'
import type { ServerFrame } from '@sandlot/shared/chat/frames'
import { WebSocket } from 'ws'
import { agentUserOf } from '../auth/agent-user.ts'
import type { Caller } from '../auth/caller.ts'
import { Chat } from '../chat/chat.ts'
import type { ChatOptions } from '../chat/chat.ts'
import type { Limits } from '../auth/limits.ts'
import { type UserTraffic, kindOfFrame } from '../auth/user-traffic.ts'
import type { Metrics } from '../metrics.ts'
import { readFrame } from './frame.ts'
import { FrameIntake } from './frame-intake.ts'
import { answerPings, keepAlive } from '@sandlot/shared/node/keep-alive'
import { FrameWriter } from './frame-writer.ts'
import { CLOSE } from './sockets.ts'
import type { OpenSocket, Sockets } from './sockets.ts'

/**
 * Bytes that may wait for one reader. A slower one is dropped and resumes, further on each time.
 */
export const SLOW_READER_BYTES = 16 * 1024 * 1024
/** Time for a dropped reader to read the close frame, in milliseconds. */
const CLOSE_GRACE_MS = 5_000

export interface ChatSocketOptions {
  caller: Caller
  chat: Pick<ChatOptions, 'agent' | 'uploads' | 'log' | 'accessTo'>
  sockets: Sockets
  limits: Limits
  traffic: UserTraffic
  metrics: Metrics
  /** Bytes that may wait for one reader. */
  slowReaderBytes: number
}

/** `ws` closes at once on a message over `maxPayload`. This one sends the reason first. */
export class ExplainingWebSocket extends WebSocket {
  override close(code?: number, reason?: string | Buffer): void {
    if (code === CLOSE.tooLarge && this.readyState === WebSocket.OPEN) {
      const message = `A frame has at most ${MAX_FRAME_BYTES} bytes. Put larger text into a file.`
      this.send(JSON.stringify({ type: 'ai_chat_error', code: 'too_large', message } satisfies ServerFrame))
    }
    super.close(code, reason)
  }
}

/** Serve `socket`, which is open over `connection` and whose caller is known, until it closes. */
export function serveChatSocket(socket: WebSocket, connection: Duplex, options: ChatSocketOptions): void {
  const { caller, sockets, limits, metrics, slowReaderBytes } = options
  const { log } = options.chat

  const writer = new FrameWriter(connection, (text) => {
    if (socket.readyState === WebSocket.OPEN) socket.send(text)
  })
  const close = (code: number, reason: string): void => {
    chat.close()
    writer.flush()
    socket.close(code, reason)
    setTimeout(() => socket.terminate(), CLOSE_GRACE_MS).unref()
  }
  const send = (frame: ServerFrame): void => {
    if (socket.readyState !== WebSocket.OPEN) return
    if (socket.bufferedAmount > slowReaderBytes) {
      log.warn({ waiting: socket.bufferedAmount }, 'dropped a slow reader')
      metrics.slowReaderDropped()
      close(CLOSE.slowReader, 'read too slowly; resume')
      return
    }
    if (frame.type === 'ai_chat_error') metrics.errorOut(frame.code)
    if (frame.type === 'ai_chat_event') metrics.eventOut(frame.event._meta.sandlot.live === true)
    writer.send(frame)
  }
  const user = agentUserOf(caller)
  const chat = new Chat({
    ...options.chat,
    send,
    user,
    mayMakeRules: caller.via === 'sign-in',
    beforePrompt: () => limits.prompt(user.id),
  })
  void chat.connect()
  const open = { caller, send, close }
  const leave = sockets.add(open)

  const intake = new FrameIntake(socket, (text) => handleText(text, socket, chat, open, options))
  // While frames wait, the browser's answers wait behind them.
  keepAlive(socket, { isHeld: () => socket.isPaused })
  answerPings(socket)
  socket.on('message', (data: Buffer, isBinary) => {
    // A binary one is refused in its turn, as what is not JSON.
    if (socket.readyState === WebSocket.OPEN) intake.take(isBinary ? '' : data.toString('utf8'))
  })
  // A protocol error of the peer; `close` follows and cleans up.
  socket.on('error', (error) => log.debug({ error: error.message }, 'a chat socket failed'))
  socket.once('close', () => {
    leave()
    intake.close()
    chat.close()
  })
}

async function handleText(
  text: string,
  socket: WebSocket,
  chat: Chat,
  open: OpenSocket,
  { caller, sockets, traffic, metrics }: ChatSocketOptions,
): Promise<void> {
  const frame = readFrame(text)
  const isFrame = frame.type !== 'ai_chat_error'
  try {
    await traffic.request(caller.account.id, kindOfFrame(isFrame ? frame.type : undefined))
  } catch (error) {
    const requestId = 'requestId' in frame ? frame.requestId : undefined
    const sessionId = 'sessionId' in frame ? frame.sessionId : undefined
    return open.send({ type: 'ai_chat_error', requestId, sessionId, ...toErrorBody(error, requestId) })
  }
  if (socket.readyState !== WebSocket.OPEN) return
  if (!isFrame) return open.send(frame)
  metrics.frameIn(frame.type)
  if (frame.type === 'ai_chat_visible') return sockets.looks(open, frame.visible)
  if (frame.type === 'ai_chat_resume') metrics.resumed()
  if (frame.type === 'ai_chat_watch' && caller.via === 'key' && !caller.scopes.includes('files'))
    return open.send({
      type: 'ai_chat_error',
      code: 'forbidden',
      message: 'This API key has no scope “files”.',
    })
  await chat.handle(frame)
}
