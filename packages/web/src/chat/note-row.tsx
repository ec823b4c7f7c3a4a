import { noteWords } from '@sandlot/shared/note-words'
import type { NoteEntry } from '@sandlot/shared/transcript-entries'
import { memo } from 'react'

/** One quiet line between the messages. */
export const NoteRow = memo(function NoteRow(props: { entry: NoteEntry }) {
  return (
    <p data-testid="note" className="text-sm text-muted [overflow-wrap:anywhere]">
      {noteWords(props.entry.event)}
    </p>
  )
})
