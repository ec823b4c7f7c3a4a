/** Accepts a message into a session: as a prompt of its own, or queued after the one that runs. */
import { SandlotError, messageOf } from '@sandlot/shared/base/errors'
import type { Mode } from '@sandlot/shared/chat/mode'
import { type SessionEvent, metaOf, sandlotEventOf } from '@sandlot/shared/chat/events'
import { makeMeta } from '@sandlot/shared/chat/event-meta'
import type { Command, OnError } from '@sandlot/shared/chat/sandlot-event'
import { newId } from '@sandlot/shared/base/ids'
import { noRoomError } from '@sandlot/storage/sessions/store-room'
import { isNotOwner } from '@sandlot/storage/storage-error'
import { promptsOf } from '../history/branch.ts'
import { commandIn } from '../loop/compact-command.ts'
import {
  queuedMessages,
  type PromptEnd,
  type QueuedMessage,
  type Unqueued,
  unqueued,
} from '../history/read-log.ts'
import type { ModelImage } from '../model/model.ts'
import type { Author } from '@sandlot/shared/chat/shares'
import { type OnBehalf, lowestCeiling } from './access.ts'
import type { SessionCore } from './core.ts'
import {
  promptIdOf,
  queuedMessage,
  sentMessage,
  userMessage,
  withdrawnMessage,
  imageMessages,
} from '../history/session-messages.ts'
import { sizeOf } from './outcome-images.ts'
import { promptBeginning } from './prompt/next.ts'
import type { Runner } from './runner.ts'
import { titleOf } from './title.ts'

export interface PromptOptions {
  /** The message's id, `m_…`, never used before. The prompt that it becomes is called `p_…`. */
  messageId?: string
  /** The same one again is the same prompt. */
  requestId?: string
  /** Images after the text. */
  images?: readonly ModelImage[]
  whenBusy?: 'steer' | 'queue' | 'refuse'
  /** No client can answer an approval: each is denied at once. */
  unattended?: boolean
  /** The consequence of a failed call for the prompt that it becomes; absent: `continue`. */
  onError?: OnError
  /** The prompt that it follows, null: none; absent: the newest. */
  follows?: string | null | undefined
  /** The highest mode that an administrator lets the session's owner have. */
  modeCeiling?: Mode
  /** The author; absent: the owner. */
  author?: Author | undefined
  /** Terms of a message that is not the owner's. */
  onBehalf?: OnBehalf
}

/**
 * A stored prompt. `done` resolves when the prompt that took the message has ended, or the message
 * was withdrawn; it rejects only if the store fails.
 */
export interface Accepted {
  sessionId: string
  promptId: string
  duplicate: boolean
  done: Promise<PromptEnd>
}

export class Prompts {
  readonly #core: SessionCore
  readonly #runner: Runner

  constructor(core: SessionCore, runner: Runner) {
    this.#core = core
    this.#runner = runner
  }

  /** See `Session.prompt`. */
  submit(text: string, options: PromptOptions): Promise<Accepted> {
    return this.#core.inTurn(async () => {
      this.#core.modeCeiling = options.modeCeiling ?? 'yolo'
      await this.#runner.resumeUnfinished()
      const known = await this.#submitted(options)
      if (known !== undefined) return this.#accepted(known, true)
      await this.#checkImages(options.images)
      const { running } = this.#core
      this.#checkFollows(options)
      const command = (options.images ?? []).length > 0 ? undefined : commandIn(text)
      if (command !== undefined && options.onBehalf?.modeCeiling !== undefined)
        throw new SandlotError('forbidden', `Only the owner of this chat can send /${command.name}.`)
      if (running === undefined) return this.#start(text, options, command)
      if (command !== undefined)
        throw new SandlotError(
          'busy',
          `The agent is still at work here. Send /${command.name} when it is done, or stop it.`,
        )
      if (options.whenBusy === 'refuse') {
        throw new SandlotError('busy', 'The agent is still at work here. Wait until it is done, or stop it.')
      }
      return this.#enqueue(running.promptId, text, options)
    })
  }

  /**
   * Throws `not_found`, `busy` (while another prompt runs) and `forbidden`: in another user's chat,
   * only the author of a message resends it.
   */
  #checkFollows({ follows, author, onBehalf }: PromptOptions): void {
    if (follows === undefined) return
    const { log, running } = this.#core
    const prompts = promptsOf(log)
    if (follows !== null && !prompts.some(({ id }) => id === follows))
      throw new SandlotError('not_found', 'There is no such message in this chat.')
    if (running !== undefined && follows !== running.promptId)
      throw new SandlotError(
        'busy',
        'The agent is still at work here. Wait until it is done, or stop it, to go on from another message.',
      )
    const others = prompts.filter((prompt) => prompt.follows === follows).map(({ id }) => id)
    const isOwners = onBehalf?.modeCeiling === undefined
    if (isOwners || others.length === 0) return
    const isTheirs = log.some(
      (event) =>
        sandlotEventOf(event)?.type === 'prompt_started' &&
        others.includes(metaOf(event).promptId ?? '') &&
        metaOf(event).author?.id === author?.id,
    )
    if (!isTheirs)
      throw new SandlotError(
        'forbidden',
        'Only the owner of this chat and the author of a message can edit it.',
      )
  }

  /** See `Session.hold`. */
  hold(text: string, as: QueuedMessage['as']): Promise<void> {
    return this.#core.inTurn(() => {
      const { running, parts } = this.#core
      const messageId = newId('m')
      const promptId = running?.promptId ?? promptIdOf(messageId)
      return this.#core.store([queuedMessage({ messageId, text, as }, promptId, parts.now())])
    })
  }

  /** Throws `store_full`. A text has always room. */
  async #checkImages(images: readonly ModelImage[] = []): Promise<void> {
    if (images.length === 0) return
    const { parts, userId } = this.#core
    const missing = await parts.store.outputs.missingRoom(userId, sizeOf(images))
    if (missing !== undefined) throw noRoomError(missing, images.length === 1 ? 'The image' : 'The images')
  }

  /** See `Session.withdraw`. */
  withdraw(messageId: string): Promise<Unqueued['why']> {
    return this.#core.inTurn(async () => {
      const { log, parts } = this.#core
      const before = unqueued(log, messageId)
      if (before !== undefined) return before.why
      if (!queuedMessages(log).some((message) => message.messageId === messageId))
        throw new SandlotError('not_found', 'There is no such queued message in this chat.')
      await this.#core.store([withdrawnMessage(messageId, parts.now())])
      this.#runner.notifyWaiters()
      return 'withdrawn'
    })
  }

  /**
   * The prompt that was submitted under this request id. Throws `conflict` if it is in another
   * session.
   */
  async #submitted({ requestId, author }: PromptOptions): Promise<string | undefined> {
    if (requestId === undefined) return undefined
    const { parts, userId, id } = this.#core
    const known = await parts.store.log.findSubmission(author?.id ?? userId, requestId)
    if (known === undefined || known.sessionId === id) return known?.promptId
    throw new SandlotError('conflict', 'This request id was used for a message in another chat.')
  }

  async #start(text: string, options: PromptOptions, command: Command | undefined): Promise<Accepted> {
    const { requestId, unattended = false, onError, messageId = newId('m'), author } = options
    const { parts, journal, log } = this.#core
    const promptId = promptIdOf(messageId)
    const at = parts.now()
    const title: SessionEvent[] =
      journal.title === null && command === undefined
        ? [
            {
              sessionUpdate: 'session_info_update',
              title: titleOf(text),
              _meta: makeMeta({ promptId }, at),
            },
          ]
        : []
    // Messages queued when an earlier prompt was stopped go first; before a command they are a
    // prompt of their own.
    const waited = command === undefined ? queuedMessages(log) : []
    const modeCeiling = lowestCeiling([...waited, options.onBehalf ?? {}])
    const { chargedTo } = options.onBehalf ?? {}
    // The newest is followed anyway.
    const follows = options.follows === promptsOf(log).at(-1)?.id ? undefined : options.follows
    const start = { requestId, unattended, onError, command, modeCeiling, chargedTo, author, follows }
    await this.#core.store([
      ...promptBeginning(messageId, this.#core, start, at),
      ...title,
      ...waited.flatMap((message) => sentMessage(message, promptId, at)),
      userMessage({ messageId, text, author }, promptId, at),
      ...imageMessages({ messageId, author }, options.images ?? [], promptId, at),
    ])
    this.#runner.start({ promptId, unattended, modeCeiling, chargedTo })
    return this.#accepted(promptId, false)
  }

  async #enqueue(runningId: string, text: string, options: PromptOptions): Promise<Accepted> {
    const { requestId, unattended = false, onError, messageId = newId('m'), images = [] } = options
    const { author, onBehalf } = options
    const { userId, parts } = this.#core
    // The running prompt may have a higher mode: a message that is bound never joins it.
    const isBound = onBehalf?.modeCeiling !== undefined
    const as: QueuedMessage['as'] = options.whenBusy === 'queue' || isBound ? 'queue' : 'steer'
    const promptId = promptIdOf(messageId)
    const submission =
      requestId === undefined ? {} : { submission: { userId: author?.id ?? userId, requestId, promptId } }
    const message = {
      messageId,
      text,
      as,
      ...(images.length === 0 ? {} : { images: [...images] }),
      ...(unattended ? { unattended } : {}),
      onError,
      author,
      ...onBehalf,
    }
    await this.#core.store([queuedMessage(message, runningId, parts.now())], submission)
    return this.#accepted(promptId, false)
  }

  #accepted(promptId: string, duplicate: boolean): Accepted {
    const { id: sessionId, parts } = this.#core
    const done = this.#runner.ended(promptId)
    done.catch((error: unknown) => {
      if (isNotOwner(error)) return
      const fields = { sessionId, promptId, error: messageOf(error) }
      parts.log.warn(fields, 'a prompt could not be finished')
    })
    return { sessionId, promptId, duplicate, done }
  }
}
