/**
 * Standing instructions in the model's messages, from the log alone. The system text has those of
 * the first prompt, or of the last summary; a later change is a note in front of the message of its
 * prompt, so that a request begins with the one before it and the provider's cache serves.
 */
import { CHANGED_TAG, withoutChangedTags } from '@sandlot/shared/base/instruction-text'
import { withoutReadTimes } from '@sandlot/shared/chat/instruction-files'
import type { SandlotEvent } from '@sandlot/shared/chat/sandlot-event'

// These texts are part of stored histories: a change makes every cached prefix worthless once.

/** Ours comes first, so that what people add is read with it in mind. */
const INTRO = `What you have been told for this work. Where two of these disagree, the one further up counts, and the user's own messages say what is to be done.`

/** A change of the instructions, in front of a message of the user. */
export interface InstructionsNote {
  /** Number of the event that changed them. */
  seq: number
  /** The instructions that the model has from the messages before. */
  before: string
  text: string
}

/** A message of the user that may carry the note of its prompt. */
interface Message {
  promptId: string | undefined
  note?: InstructionsNote | undefined
}

/** A fold of a log: feed its events in order. */
export class InstructionsFold {
  /** The instructions in the system text. */
  inSystem = ''
  #now = ''
  #firstPrompt: string | undefined
  /** The note for the next message: a command's prompt has none. */
  #waiting: InstructionsNote | undefined
  #promptSeq = 0
  /** Number of the event that began the first prompt with a note. */
  #firstNote = Number.POSITIVE_INFINITY

  /** `last`: the message of the user with which the log ends so far, if it ends with one. */
  read(event: SandlotEvent, promptId: string | undefined, seq: number, last: Message | undefined): void {
    if (event.type === 'prompt_started') {
      this.#firstPrompt ??= promptId
      this.#promptSeq = seq
    } else if (event.type === 'compacted' && event.summary !== '') {
      this.inSystem = this.#now
      this.#waiting = undefined
    } else if (event.type === 'instructions') {
      const message = last?.promptId === promptId ? last : undefined
      const before = (message?.note ?? this.#waiting)?.before ?? this.#now
      this.#now = event.text
      if (promptId === this.#firstPrompt) this.inSystem = event.text
      else {
        const text = noteText(before, event.text)
        const note = text === undefined ? undefined : { seq, before, text }
        if (note !== undefined) this.#firstNote = Math.min(this.#firstNote, this.#promptSeq)
        if (message === undefined) this.#waiting = note
        else message.note = note
      }
    }
  }

  /** The text of a message as the model gets it. Where notes may be, it cannot pass for one. */
  textOf({ seq, text, note }: Message & { seq: number; text: string }, compactedAt: number): string {
    const own = seq < this.#firstNote ? text : withoutChangedTags(text)
    return note !== undefined && note.seq > compactedAt ? `${note.text}\n\n${own}` : own
  }

  /** The note for the message that comes now. */
  take(): InstructionsNote | undefined {
    const note = this.#waiting
    this.#waiting = undefined
    return note
  }
}

/** The system text. `instructions`: may be empty. */
export function withInstructions(system: string, instructions: string): string {
  return instructions === '' ? system : [system, INTRO, instructions].join('\n\n')
}

/** Each part begins with a line of its own that says from whom it is. */
const PARTS = /(?<=\n\n)(?=From [^\n]+:\n\n)/

/** Undefined where only the times differ at which files were read. */
function noteText(before: string, now: string): string | undefined {
  if (withoutReadTimes(before) === withoutReadTimes(now)) return undefined
  const known = new Set(partsOf(withoutReadTimes(before)))
  const parts = partsOf(now)
  const fresh = parts.filter((part) => !known.has(withoutReadTimes(part)))
  const inForce =
    parts.length === 0
      ? 'None of them is in force any more.'
      : `In force are now, the one further up counting more:\n${parts.map((part) => `- ${headingOf(part)}`).join('\n')}`
  return [
    `<${CHANGED_TAG}>\nWhat you have been told for this work has changed. What is not repeated here stays as it was.`,
    inForce,
    ...fresh,
    `</${CHANGED_TAG}>`,
  ].join('\n\n')
}

function partsOf(text: string): string[] {
  return text === '' ? [] : text.split(PARTS).map((part) => part.trimEnd())
}

function headingOf(part: string): string {
  return part.slice(0, part.indexOf(':\n'))
}
