/** One quiet line at the end of a prompt: what it changed in the workspace. */
import type { ChangesEntry } from '@sandlot/shared/transcript/entries'
import { ChevronRight, FileDiff } from 'lucide-react'
import { memo, type ReactNode, useId, useState } from 'react'
import { useReading } from '../state/reading.ts'
import { useWorkspace } from '../state/use-workspace.ts'
import { cn } from '../lib/cn.ts'
import { changedWords, linesOf } from '@sandlot/shared/transcript/change-words'
import { FileLine, LineCounts, MoreFiles } from './file-line.tsx'
import { useShownPrompt } from './shown-prompt.ts'

const BUTTON =
  '-ml-1.5 inline-flex max-w-full items-center gap-2 rounded-md px-1.5 py-1 text-left text-sm text-muted hover:bg-hover hover:text-ink pointer-coarse:min-h-11'

/** The owner has the files, so it opens the panel; for other readers it names them in place. */
export const ChangesLine = memo(function ChangesLine(props: { entry: ChangesEntry }) {
  const { entry } = props
  const { access, snapshot } = useReading()
  const { open } = useWorkspace()
  const words = (
    <>
      <FileDiff className="size-3.5 shrink-0" aria-hidden />
      <span className="min-w-0">{changedWords(entry)}</span>
      <LineCounts lines={linesOf(entry.files)} />
    </>
  )
  if (entry.files.length === 0)
    return (
      <p data-testid="changes-line" className="flex items-center gap-2 text-sm text-muted">
        {words}
      </p>
    )
  if (access === 'own' && snapshot !== true)
    return (
      <button
        type="button"
        data-testid="changes-line"
        onClick={() => {
          useShownPrompt.setState({ promptId: entry.id })
          open('changes')
        }}
        className={BUTTON}
      >
        {words}
      </button>
    )
  return <NamedChanges entry={entry}>{words}</NamedChanges>
})

function NamedChanges({ entry, children }: { entry: ChangesEntry; children: ReactNode }) {
  const [named, setNamed] = useState(false)
  const listId = useId()
  return (
    <div data-testid="changes-line">
      <button
        type="button"
        aria-expanded={named}
        aria-controls={listId}
        onClick={() => setNamed(!named)}
        className={BUTTON}
      >
        {children}
        <ChevronRight
          className={cn(
            'size-3.5 shrink-0 text-faint transition-transform duration-100',
            named && 'rotate-90',
          )}
          aria-hidden
        />
      </button>
      <ul id={listId} hidden={!named} className="mt-1 ml-1 flex flex-col gap-1 border-l-2 border-line pl-4">
        {named && (
          <>
            {entry.files.map((file) => (
              <li key={file.path}>
                <FileLine file={file} />
              </li>
            ))}
            <MoreFiles more={entry.more} />
          </>
        )}
      </ul>
    </div>
  )
}
