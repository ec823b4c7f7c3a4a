/** One prompt of an HTTP request, from its submission to its end, through a chat of its own. */
import { orTimeout } from '@sandlot/shared/async/or-timeout'
import { SandlotError, messageOf } from '@sandlot/shared/base/errors'
import { metaOf, sandlotEventOf, seqOf } from '@sandlot/shared/chat/events'
import type { Mode } from '@sandlot/shared/chat/mode'
import type { SessionEvent } from '@sandlot/shared/chat/events'
import type { ServerFrame } from '@sandlot/shared/chat/frames'
import { WITHOUT_WORDS } from '@sandlot/shared/chat/images'
import { Chat } from './chat.ts'
import type { ChatEnd, ChatOptions } from './chat.ts'
import type { PromptRequest } from './submission.ts'

export interface UnattendedOptions
  extends
    Omit<ChatOptions, 'send'>,
    Pick<PromptRequest, 'onError' | 'follows' | 'model' | 'thoughtLevel' | 'project' | 'unattended'> {
  requestId: string
  sessionId: string | undefined
  text: string
  images?: readonly string[] | undefined
  mode: Mode | undefined
  create: { defaultMode?: Mode } | undefined
  /**
   * An earlier submission: deliver events settled after this number, to the prompt's end where that
   * is stored.
   */
  submitted: { sessionId: string; after: number; end: number | undefined } | undefined
  /** Aborts when the client went away. */
  gone: AbortSignal
  /** Aborts when the service stops. Prompts go on. */
  stopping: AbortSignal
  /** Stop the prompt when the client goes away. */
  cancelWhenGone: boolean
  /**
   * `ai_chat_accepted`, then the frames of this prompt, then its `ai_chat_done`. Must not throw.
   */
  onFrame: (frame: ServerFrame) => void
}

interface PromptRef {
  sessionId: string
  promptId: string
}

/**
 * Time to wait for the answer to a submission, to stop a prompt whose client disconnected right
 * after it.
 */
const ACCEPT_TIMEOUT_MS = 5_000

/** Resolves at the end of the prompt. Throws `SandlotError`. */
export async function runPrompt(options: UnattendedOptions): Promise<PromptRef> {
  const { gone, stopping, submitted } = options
  const frames = new PromptFrames(options)
  const { accepted, ended } = frames
  // The client may leave before the end is awaited.
  ended.promise.catch(() => undefined)
  const leave = (): void =>
    ended.reject(
      new SandlotError('agent_unavailable', 'The service stops. The same requestId continues this later.'),
    )

  const chat = new Chat({ ...options, send: (frame) => frames.take(frame) })
  const both = AbortSignal.any([gone, stopping])
  both.addEventListener('abort', leave, { once: true })
  try {
    if (both.aborted) leave()
    if (submitted !== undefined) await chat.resume(submitted.sessionId, submitted.after)
    chat.prompt(submissionOf(options)).then(
      (end) => frames.answered(end),
      (error: unknown) => {
        accepted.reject(error)
        ended.reject(error)
      },
    )
    // `ended` rejects with the same failure.
    accepted.promise.catch(() => undefined)
    return await ended.promise
  } finally {
    both.removeEventListener('abort', leave)
    if (gone.aborted && options.cancelWhenGone) await stop(chat, accepted.promise, options)
    chat.close()
  }
}

function submissionOf(options: UnattendedOptions) {
  const { requestId, sessionId, mode, create, onError, follows, model, thoughtLevel, project } = options
  // The agent has the message of an earlier submission; its images may have been swept since.
  const { text, images } =
    options.submitted === undefined
      ? options
      : { text: options.text === '' ? WITHOUT_WORDS : options.text, images: [] }
  return {
    requestId,
    sessionId,
    text,
    images,
    mode,
    create,
    onError,
    follows,
    model,
    thoughtLevel,
    project,
    whenBusy: 'refuse',
    unattended: options.unattended,
  } as const
}

/** Passes on the frames of the prompt that a submission becomes. */
class PromptFrames {
  readonly accepted = Promise.withResolvers<PromptRef>()
  readonly ended = Promise.withResolvers<PromptRef>()
  readonly #options: UnattendedOptions
  /** Frames that came before it was known which prompt is ours. */
  #early: ServerFrame[] = []
  #mine: PromptRef | undefined
  #done = false

  constructor(options: UnattendedOptions) {
    this.#options = options
  }

  take(frame: ServerFrame): void {
    const mine = this.#mine
    if (mine !== undefined) {
      this.#pass(frame, mine)
      // After a reconnect: the agent no longer has the session, so nothing else will come.
      if (frame.type === 'ai_chat_error' && frame.sessionId === mine.sessionId)
        this.ended.reject(new SandlotError(frame.code, frame.message))
    } else if (frame.type === 'ai_chat_accepted' && frame.requestId === this.#options.requestId) {
      const accepted = { sessionId: frame.sessionId, promptId: frame.promptId }
      this.#mine = accepted
      this.accepted.resolve(accepted)
      this.#options.onFrame(frame)
      for (const earlier of this.#early) this.#pass(earlier, accepted)
      this.#early = []
    } else {
      this.#early.push(frame)
    }
  }

  /** A repeated submission may bring no event: then only the agent's answer has its end. */
  answered(end: ChatEnd | undefined): void {
    const mine = this.#mine
    if (end === undefined || mine === undefined) return
    // A queued message was taken by another prompt: that one has the answer.
    this.ended.resolve({ sessionId: mine.sessionId, promptId: end.promptId })
    this.#pass({ type: 'ai_chat_done', ...mine, stopReason: end.stopReason }, mine)
  }

  #pass(frame: ServerFrame, prompt: PromptRef): void {
    // After the prompt, a history has events that belong to none.
    if (this.#done || !isOfPrompt(frame, prompt.promptId) || !isWithin(frame, this.#options.submitted)) return
    if (frame.type === 'ai_chat_done') {
      this.#done = true
      this.ended.resolve(prompt)
    }
    this.#options.onFrame(frame)
  }
}

async function stop(chat: Chat, accepted: Promise<PromptRef>, { log }: UnattendedOptions): Promise<void> {
  try {
    const prompt = await orTimeout(accepted, ACCEPT_TIMEOUT_MS, undefined)
    if (prompt !== undefined) await chat.cancel(prompt.sessionId)
  } catch (error) {
    log.info({ error: messageOf(error) }, 'nothing to stop for a client that disconnected')
  }
}

/**
 * The first event of the prompt that this request id of this person made, if the log of the
 * owner's session has it, and its end, if it has ended.
 */
export function findSubmitted(
  log: readonly SessionEvent[],
  requestId: string,
  by: string,
  owner: string,
): { first: SessionEvent; end: SessionEvent | undefined } | undefined {
  const started = log.find((event) => {
    const inner = sandlotEventOf(event)
    if (inner?.type !== 'prompt_started' || inner.requestId !== requestId) return false
    return (authorOf(log, event) ?? owner) === by
  })
  if (started === undefined) return undefined
  const { promptId } = metaOf(started)
  const ofPrompt = log.filter((event) => metaOf(event).promptId === promptId)
  const end = ofPrompt.find((event) => sandlotEventOf(event)?.type === 'prompt_ended')
  return { first: ofPrompt[0] ?? started, end }
}

/** Undefined: the log names none, as older ones of the owner's own prompts. */
function authorOf(log: readonly SessionEvent[], started: SessionEvent): string | undefined {
  const { promptId, author } = metaOf(started)
  if (author !== undefined) return author.id
  const message = log.find(
    (event) => event.sessionUpdate === 'user_message_chunk' && metaOf(event).promptId === promptId,
  )
  return message === undefined ? undefined : metaOf(message).author?.id
}

/** Frames of this prompt, and events that belong to none (a title, a change of mode). */
function isOfPrompt(frame: ServerFrame, promptId: string): boolean {
  if (frame.type === 'ai_chat_event') return (metaOf(frame.event).promptId ?? promptId) === promptId
  return frame.type === 'ai_chat_done' && frame.promptId === promptId
}

function isWithin(frame: ServerFrame, submitted: UnattendedOptions['submitted']): boolean {
  const seq = frame.type === 'ai_chat_event' ? seqOf(frame.event) : undefined
  if (seq === undefined || submitted === undefined) return true
  return seq > submitted.after && seq <= (submitted.end ?? Infinity)
}
