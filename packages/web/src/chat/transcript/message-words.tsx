/** The words of a person's message, with the files that they name as ways to look at them. */
import { File as FileIcon } from 'lucide-react'
import { cn } from '../../lib/cn.ts'
import { useWorkspace } from '../../state/use-workspace.ts'
import { revealedText } from '../../lib/invisible.ts'
import { Revealed } from '../../ui/revealed.tsx'
import { partsWithPaths } from '../attached-files.ts'
import { useReading } from '../../state/reading.ts'

export function MessageWords({ words }: { words: string }) {
  const { openFile } = useWorkspace()
  const { access } = useReading()
  return partsWithPaths(words).map(({ text, at, path }) =>
    // Links into another user's workspace are inactive.
    path === undefined || access !== 'own' ? (
      <Revealed key={at} text={text} />
    ) : (
      <button
        key={at}
        type="button"
        data-testid="named-file"
        onClick={() => openFile(path)}
        className="inline text-left text-accent underline decoration-accent-line underline-offset-2 hover:decoration-accent"
      >
        <Revealed text={text} />
      </button>
    ),
  )
}

/** The files that were attached to a message. `end`: at the side of one's own messages. */
export function AttachedFiles(props: { paths: readonly string[]; end: boolean; above: boolean }) {
  const { openFile } = useWorkspace()
  const { access } = useReading()
  const chip =
    'inline-flex max-w-full items-center gap-2 rounded-lg border border-line bg-panel px-2.5 py-1.5 text-sm'
  return (
    <ul
      aria-label="Attached files"
      className={cn('flex max-w-[85%] flex-wrap gap-2', props.end && 'justify-end', props.above && 'mb-2')}
    >
      {props.paths.map((path) => {
        const name = (
          <>
            <FileIcon className="size-4 shrink-0 text-faint" aria-hidden />
            <span className="min-w-0 truncate">
              <Revealed text={path.slice(path.lastIndexOf('/') + 1)} />
            </span>
          </>
        )
        return (
          <li key={path} className="max-w-full">
            {access === 'own' ? (
              <button
                type="button"
                title={revealedText(`/workspace/${path}`)}
                onClick={() => openFile(path)}
                className={cn(chip, 'hover:bg-hover pointer-coarse:min-h-11')}
              >
                {name}
              </button>
            ) : (
              <span className={chip}>{name}</span>
            )}
          </li>
        )
      })}
    </ul>
  )
}
