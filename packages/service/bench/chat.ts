/** Messages of a chat on an open connection, as the page sends and receives them. */
import type { SessionEvent } from '@sandlot/shared/chat/events'
import { newId } from '@sandlot/shared/base/ids'
import type { ClientFrame } from '@sandlot/shared/chat/frames'
import type { WebSocket } from 'ws'

/** The inspected part of a frame: events alone or several together. */
interface Frame {
  type: string
  sessionId?: string
  message?: string
  event?: SessionEvent
  events?: SessionEvent[]
}

/** Until the returned function is called. */
export function follow(socket: WebSocket, onFrame: (frame: Frame) => void): () => void {
  const onMessage = (data: Buffer): void => onFrame(JSON.parse(data.toString()) as Frame)
  socket.on('message', onMessage)
  return () => socket.off('message', onMessage)
}

export const frameOf = (frame: ClientFrame): string => JSON.stringify(frame)

/** A message in this chat; absent: in a new one. Resolves with the chat's id when the prompt has ended. */
export async function promptOn(
  socket: WebSocket,
  text: string,
  onEvent: (event: SessionEvent) => void,
  sessionId?: string,
): Promise<string> {
  const { promise: ended, resolve, reject } = Promise.withResolvers<string>()
  const unfollow = follow(socket, (frame) => {
    const { type, message, event, events = event === undefined ? [] : [event] } = frame
    for (const one of events) onEvent(one)
    if (type === 'ai_chat_done') resolve(frame.sessionId ?? '')
    if (type === 'ai_chat_error') reject(new Error(message))
  })
  const requestId = newId('r')
  socket.send(frameOf({ type: 'ai_chat', requestId, sessionId, text, mode: 'yolo', whenBusy: 'queue' }))
  return ended.finally(unfollow)
}
