/**
 * Choices, answers and stops made while there was no socket. The service has not received them, so
 * they are stored in the tab over a reload, as messages in the outbox are: a mode that was shown
 * must not change when these are sent.
 */
import { type ClientFrame, clientFrame } from '@sandlot/shared/chat/frames'
import type { Mode } from '@sandlot/shared/chat/mode'
import { persistedList } from './persisted-list.ts'

export const persistedWaiting = persistedList('sandlot.waiting', clientFrame, 'Choices that were not sent')

type ModelFrame = Extract<ClientFrame, { type: 'ai_chat_model' }>

/**
 * `waiting` and one frame more. A later one about the same thing replaces the earlier one; of two
 * choices of a model the later says only what it changed, so they are one choice.
 */
export function withWaiting(waiting: readonly ClientFrame[], frame: ClientFrame): ClientFrame[] {
  const key = keyOf(frame)
  const before = waiting.find((other) => keyOf(other) === key)
  const both = frame.type === 'ai_chat_model' && before?.type === 'ai_chat_model'
  return [...waiting.filter((other) => other !== before), both ? { ...before, ...frame } : frame]
}

/**
 * Before the messages goes what says how they are to be answered; behind them, what is about what
 * they began.
 */
export function aroundMessages(waiting: readonly ClientFrame[]): {
  before: ClientFrame[]
  behind: ClientFrame[]
} {
  const { before = [], behind = [] } = Object.groupBy(waiting, ({ type }) =>
    type === 'ai_chat_mode' || type === 'ai_chat_model' ? 'before' : 'behind',
  )
  return { before, behind }
}

/** The unsent mode of this session. */
export function waitingMode(waiting: readonly ClientFrame[], sessionId: string): Mode | undefined {
  return waiting.flatMap((frame) =>
    frame.type === 'ai_chat_mode' && frame.sessionId === sessionId ? [frame.modeId] : [],
  )[0]
}

/** The unsent model choice of this session. */
export function waitingModel(waiting: readonly ClientFrame[], sessionId: string): ModelFrame | undefined {
  return waiting.find(
    (frame): frame is ModelFrame => frame.type === 'ai_chat_model' && frame.sessionId === sessionId,
  )
}

function keyOf(frame: ClientFrame): string {
  switch (frame.type) {
    case 'ai_chat_approve':
      return `approve ${frame.sessionId} ${frame.toolCallId}`
    case 'ai_chat_cancel':
      return `cancel ${frame.sessionId} ${frame.toolCallId ?? ''}`
    case 'ai_chat_unqueue':
      return `unqueue ${frame.sessionId} ${frame.messageId}`
    case 'ai_chat_typing':
      return `typing ${frame.sessionId}`
    case 'ai_chat_mode':
      return `mode ${frame.sessionId}`
    case 'ai_chat_model':
      return `model ${frame.sessionId}`
    case 'ai_chat_resume':
      return `resume ${frame.sessionId}`
    case 'ai_chat_visible':
      return 'visible'
    case 'ai_chat_watch':
      return 'watch'
    case 'ai_chat':
      return `chat ${frame.requestId}`
  }
}
