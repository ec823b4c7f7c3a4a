/** Search hits among the files, as a list. */
import { useResource } from '../../state/use-resource.ts'
import { call } from '../../net/call.ts'
import { Alert } from '../../ui/alert.tsx'
import { Revealed } from '../../ui/revealed.tsx'
import { Spinner } from '../../ui/spinner.tsx'
import { folderOf, nameOf } from '../../state/dropped.ts'

/** So long after the last letter. */
const PAUSE_MS = 150
const MOST_SHOWN = 100

export function FoundFiles(props: { query: string; onOpen: (path: string, kind: string) => void }) {
  const { query } = props
  const { data: found, problem } = useResource(
    query,
    (signal) => call('findFiles', { query: { q: query, most: MOST_SHOWN }, signal }),
    { keep: true, pauseMs: PAUSE_MS },
  )
  if (problem !== null)
    return (
      <div className="p-3">
        <Alert>{problem}</Alert>
      </div>
    )
  if (found === null)
    return (
      <p role="status" className="flex items-center gap-2 px-5 py-3 text-sm text-muted">
        <Spinner /> Searching…
      </p>
    )
  return (
    <div className="min-h-0 flex-1 overflow-y-auto py-1">
      {found.entries.length === 0 && <p className="px-5 py-2 text-sm text-muted">No matches.</p>}
      <ul aria-label="Found files">
        {found.entries.map(({ path, kind }) => (
          <li key={path}>
            <button
              type="button"
              onClick={() => props.onOpen(path, kind)}
              className="flex min-h-9 w-full flex-col justify-center px-4 py-1 text-left hover:bg-hover focus-visible:-outline-offset-2 pointer-coarse:min-h-11"
            >
              <span className="max-w-full truncate text-sm">
                <Revealed text={nameOf(path)} />
                {kind === 'directory' && '/'}
              </span>
              {folderOf(path) !== '' && (
                <span className="max-w-full truncate text-xs text-muted">
                  <Revealed text={folderOf(path)} />
                </span>
              )}
            </button>
          </li>
        ))}
      </ul>
      {found.more && <p className="px-4 py-2 text-xs text-muted">Too many results; keep typing.</p>}
    </div>
  )
}
