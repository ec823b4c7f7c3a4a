/** What the agent has to tell a client's user that no model has said: as a `notice` where the client shows them, else in words. */
import type { SessionUpdate } from '@agentclientprotocol/sdk'
import { type NoteEvent, noteWords } from '@sandlot/shared/note-words'

export interface Note {
  severity: 'info' | 'warning'
  /** Says it all in a line; without a full stop. */
  title: string
  /** More about it, likewise. */
  description?: string
}

/** For a client with `session.notices`. A notice is no part of the history: it may be missed, and does not come again. */
export function noticeOf({ severity, title, description }: Note): SessionUpdate {
  return { sessionUpdate: 'notice', severity, title, description }
}

/** As a sentence. */
export function wordsOf({ title, description }: Note): string {
  return description === undefined ? `${title}.` : `${title}: ${description}.`
}

/** What the page says beside the conversation. */
export function noteOfEvent(event: NoteEvent): Note {
  return { severity: event.type === 'model_changed' ? 'warning' : 'info', title: noteWords(event) }
}
