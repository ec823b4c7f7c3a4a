/**
 * Live state of a running prompt: the text so far of each message, calls that are being written,
 * the wait for a model's retry, and the last output of each call. Live events are not stored, so
 * this is all that a late joiner can get of them.
 */
import type { OutputPiece } from '@sandlot/shared/chat/call'
import { type SessionEvent, isOutcome, metaOf, sandlotEventOf, textOf } from '@sandlot/shared/chat/events'
import type { SandlotEvent } from '@sandlot/shared/chat/sandlot-event'
import { draftOf, endsDrafts } from '@sandlot/shared/transcript/call-drafts'
import { EMPTY_OUTPUT, type LiveOutput, addPiece } from '@sandlot/shared/transcript/live-output'

/** Raw bytes of a running call's output that a late joiner gets. The rest is fetched by range. */
const SNAPSHOT_BYTES = 64 * 1024

type TextEvent = Extract<SessionEvent, { sessionUpdate: 'agent_message_chunk' | 'agent_thought_chunk' }>
type CallEvent = Extract<SessionEvent, { sessionUpdate: 'tool_call_update' }>

export class InFlight {
  readonly #texts = new Map<string, { last: TextEvent; text: string }>()
  readonly #calls = new Map<
    string,
    { last: CallEvent; output: LiveOutput; progress: SessionProgress | undefined }
  >()

  /** By place. */
  readonly #drafts = new Map<number, SessionEvent>()

  /** A request to the model waits for its turn or is made again, and nothing has come of it yet. */
  #wait: SessionEvent | undefined
  /** The end of a prompt that could not be stored yet. */
  #unsavedEnd: SessionEvent | undefined

  /** A live event is being shown. */
  show(event: SessionEvent): void {
    const meta = metaOf(event)
    if (meta.event?.type === 'ports_open') return
    if (meta.event?.type === 'prompt_ended') {
      this.#clear()
      this.#unsavedEnd = event
      return
    }
    // All that is live comes one after another while the model is asked.
    this.#wait = isWait(meta.event) ? event : undefined
    const draft = draftOf(event)
    if (draft !== undefined) this.#drafts.set(draft.place, event)
    if (event.sessionUpdate === 'agent_message_chunk' || event.sessionUpdate === 'agent_thought_chunk') {
      const text = this.#texts.get(event.messageId)?.text ?? ''
      const offset = meta.offset ?? text.length
      if (offset > text.length) return
      const longer = text + textOf(event).slice(text.length - offset)
      this.#texts.set(event.messageId, { last: event, text: longer })
    } else if (event.sessionUpdate === 'tool_call_update') {
      const call = this.#calls.get(event.toolCallId)
      const output = call?.output ?? EMPTY_OUTPUT
      this.#calls.set(event.toolCallId, {
        last: event,
        output: meta.output === undefined ? output : tailOf(addPiece(output, meta.output)),
        progress: meta.progress ?? call?.progress,
      })
    }
  }

  /** A settled event was stored: it replaces what its id had gathered. */
  settle(event: SessionEvent): void {
    this.#wait = undefined
    if (event.sessionUpdate === 'agent_message_chunk' || event.sessionUpdate === 'agent_thought_chunk') {
      this.#texts.delete(event.messageId)
    } else if (isOutcome(event)) {
      this.#calls.delete(event.toolCallId)
    }
    if (endsDrafts(event)) this.#drafts.clear()
    const happened = sandlotEventOf(event)
    if (happened?.type === 'message_withdrawn') this.#texts.delete(happened.messageId)
    if (happened?.type === 'prompt_ended') this.#clear()
  }

  #clear(): void {
    this.#wait = undefined
    this.#unsavedEnd = undefined
    this.#texts.clear()
    this.#calls.clear()
    this.#drafts.clear()
  }

  /** One live event per thing in flight. */
  snapshot(): SessionEvent[] {
    const texts = [...this.#texts.values()].map(({ last, text }) => ({
      ...last,
      content: { type: 'text' as const, text },
      _meta: { sandlot: { ...metaOf(last), offset: 0 } },
    }))
    const calls = [...this.#calls.values()].map(({ last, output, progress }) => {
      const { output: _piece, progress: _words, ...meta } = metaOf(last)
      const piece = joined(output.pieces)
      return {
        ...last,
        _meta: {
          sandlot: {
            ...meta,
            output: piece,
            progress,
          },
        },
      }
    })
    const last = [this.#wait, this.#unsavedEnd].filter((event) => event !== undefined)
    return [...texts, ...this.#drafts.values(), ...calls, ...last]
  }
}

function isWait(event: SandlotEvent | undefined): boolean {
  return event?.type === 'model_waited' || (event?.type === 'line_waited' && event.place > 0)
}

type SessionProgress = NonNullable<ReturnType<typeof metaOf>['progress']>

/**
 * The unbroken run of pieces at the end, as many whole pieces as fit into the snapshot; at least
 * the last one.
 */
function tailOf(output: LiveOutput): LiveOutput {
  let first = output.pieces.length - 1
  while (first > 0) {
    const piece = output.pieces[first]
    const before = output.pieces[first - 1]
    if (piece === undefined || before === undefined || before.end !== piece.offset) break
    if (output.end - before.offset > SNAPSHOT_BYTES) break
    first--
  }
  return first <= 0 ? output : { pieces: output.pieces.slice(first), end: output.end }
}

function joined(pieces: readonly OutputPiece[]): OutputPiece | undefined {
  const first = pieces[0]
  const last = pieces.at(-1)
  if (first === undefined || last === undefined) return undefined
  return { offset: first.offset, end: last.end, data: pieces.map((piece) => piece.data).join('') }
}
