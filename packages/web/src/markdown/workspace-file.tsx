/**
 * A file that an answer names: an image where it is named, any other behind its name. Shown in the
 * dock, read over the files API.
 */
import { FileX } from 'lucide-react'
import type { ReactNode } from 'react'
import { useReading } from '../state/reading.ts'
import { useWorkspace } from '../state/use-workspace.ts'
import { revealedText } from '../lib/invisible.ts'
import { fileUrl } from '../net/files.ts'
import { usePicture } from './use-picture.ts'

export function WorkspaceLink(props: { path: string; children: ReactNode }) {
  const { access } = useReading()
  const { openFile } = useWorkspace()
  // Another user's workspace has no links.
  if (access !== 'own') return <>{props.children}</>
  return (
    <a
      href={fileUrl(props.path)}
      target="_blank"
      rel="noopener"
      title={revealedText(props.path)}
      data-testid="workspace-link"
      onClick={(event) => {
        // A tab of its own for who asks for one.
        if (event.metaKey || event.ctrlKey || event.shiftKey) return
        event.preventDefault()
        openFile(props.path)
      }}
    >
      {props.children}
    </a>
  )
}

const CHIP =
  'inline-flex items-center gap-1.5 rounded-md border border-line bg-sunken px-2 py-0.5 text-sm text-muted'

export function WorkspaceImage(props: { path: string; alt: string }) {
  const { path, alt } = props
  const name = revealedText(alt === '' ? path : alt)
  const { access } = useReading()
  if (access === 'own') return <OwnImage path={path} name={name} />
  return (
    <span className={CHIP}>
      <FileX className="size-3.5 shrink-0" aria-hidden />
      {name}: in someone else’s workspace
    </span>
  )
}

function OwnImage({ path, name }: { path: string; name: string }) {
  const { openFile } = useWorkspace()
  const { picture, onError } = usePicture(path)
  if (picture.state === 'reading' || picture.state === 'shown')
    return (
      <button
        type="button"
        aria-label={`Open ${name}`}
        data-testid="workspace-image"
        onClick={() => openFile(path)}
        // A height of its own, so that nothing moves when the picture comes.
        className="block h-80 w-full overflow-hidden rounded-lg border border-line bg-panel max-sm:h-56"
      >
        {picture.state === 'shown' && (
          <img
            src={picture.src}
            alt={name}
            loading="lazy"
            onError={onError}
            className="size-full object-scale-down"
          />
        )}
      </button>
    )
  return (
    <span className={CHIP}>
      <FileX className="size-3.5 shrink-0" aria-hidden />
      {picture.state === 'missing' ? (
        <span>{name}: no longer in your workspace</span>
      ) : (
        <span>
          <WorkspaceLink path={path}>{name}</WorkspaceLink>
          {picture.state === 'complex' && ': too complex to draw here'}
        </span>
      )}
    </span>
  )
}
