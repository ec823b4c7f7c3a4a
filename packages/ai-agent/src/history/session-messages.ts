/** The events by which a user's message enters a session. */
import { type SessionEvent, makeSandlotEvent } from '@sandlot/shared/chat/events'
import { makeMeta } from '@sandlot/shared/chat/event-meta'
import type { Mode } from '@sandlot/shared/chat/mode'
import type { Command, OnError } from '@sandlot/shared/chat/sandlot-event'
import type { Author } from '@sandlot/shared/chat/shares'
import type { QueuedMessage } from './read-log.ts'
import type { ModelImage } from '../model/model.ts'

/**
 * A message becomes the prompt of the same name, so that the prompt's id is known while it waits.
 */
export function promptIdOf(messageId: string): string {
  return messageId.replace(/^m_/, 'p_')
}

export function messageIdOf(promptId: string): string {
  return promptId.replace(/^p_/, 'm_')
}

export interface PromptStart {
  model: string
  /** The thought level sent with it; absent: the model's default. */
  thoughtLevel?: string | undefined
  requestId?: string | undefined
  unattended?: boolean
  /** The consequence of a failed call for the prompt; absent: `continue`. */
  onError?: OnError | undefined
  /** The message is this command. */
  command?: Command | undefined
  /** See `prompt_started`. */
  modeCeiling?: Mode | undefined
  chargedTo?: string | undefined
  /** The author of the message; absent: the owner. */
  author?: Author | undefined
  follows?: string | null | undefined
}

/** `prompt_started` of the prompt that this message becomes. */
export function promptStarted(messageId: string, start: PromptStart, at: number): SessionEvent {
  const { model, thoughtLevel, requestId, unattended, onError, command } = start
  const { modeCeiling, chargedTo, author, follows } = start
  const event = {
    type: 'prompt_started',
    model,
    thoughtLevel,
    requestId,
    ...(unattended === true ? { unattended } : {}),
    onError,
    command,
    modeCeiling,
    chargedTo,
    follows,
  } as const
  return makeSandlotEvent(event, { promptId: promptIdOf(messageId), author }, at)
}

export function userMessage(
  { messageId, text, author }: Pick<QueuedMessage, 'messageId' | 'text' | 'author'>,
  promptId: string,
  at: number,
): SessionEvent {
  return {
    sessionUpdate: 'user_message_chunk',
    messageId,
    content: { type: 'text', text },
    _meta: makeMeta({ promptId, author }, at),
  }
}

/** The images of a message, each behind it under an id of its own. */
export function imageMessages(
  { messageId, author }: Pick<QueuedMessage, 'messageId' | 'author'>,
  images: readonly ModelImage[],
  promptId: string,
  at: number,
): SessionEvent[] {
  return images.map(({ mimeType, data }, index) => ({
    sessionUpdate: 'user_message_chunk',
    messageId: `${messageId}_${index + 1}`,
    content: { type: 'image', mimeType, data },
    _meta: makeMeta({ promptId, author }, at),
  }))
}

/** A message that waits. `promptId`: the prompt that runs. */
export function queuedMessage(
  { author, ...message }: QueuedMessage,
  promptId: string,
  at: number,
): SessionEvent {
  return makeSandlotEvent({ type: 'message_queued', ...message }, { promptId, author }, at)
}

/** A message that waited becomes part of a prompt. */
export function sentMessage(message: QueuedMessage, promptId: string, at: number): SessionEvent[] {
  const { messageId, images = [] } = message
  const unqueued = { type: 'message_unqueued', messageId, why: 'sent' } as const
  return [
    makeSandlotEvent(unqueued, { promptId }, at),
    userMessage(message, promptId, at),
    ...imageMessages(message, images, promptId, at),
  ]
}

/**
 * A message that waited was taken back by its person. Under the id of the prompt that it would have
 * become.
 */
export function withdrawnMessage(messageId: string, at: number): SessionEvent {
  const event = { type: 'message_unqueued', messageId, why: 'withdrawn' } as const
  return makeSandlotEvent(event, { promptId: promptIdOf(messageId) }, at)
}
