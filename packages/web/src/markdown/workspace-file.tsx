/**
 * A file that an answer names: an image where it is named, any other behind its name. Shown in the
 * dock, read over the files API.
 */
import { FileX } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { useReading } from '../chat/sharing/reading.ts'
import { useDesk } from '../desk/use-desk.ts'
import { revealedText } from '../lib/invisible.ts'
import { fileIsGone, fileUrl } from '../net/files.ts'

export function WorkspaceLink(props: { path: string; children: ReactNode }) {
  const { access } = useReading()
  const { openFile } = useDesk()
  // Of a workspace that is not the reader's.
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
  const { openFile } = useDesk()
  const [broken, setBroken] = useState<'gone' | 'other' | null>(null)
  const name = revealedText(alt === '' ? path : alt)
  const { access } = useReading()
  const findOut = async () => setBroken((await fileIsGone(path).catch(() => false)) ? 'gone' : 'other')
  if (access !== 'own')
    return (
      <span className={CHIP}>
        <FileX className="size-3.5 shrink-0" aria-hidden />
        {name}: in a workspace that is not yours
      </span>
    )
  if (broken !== null)
    return (
      <span className={CHIP}>
        <FileX className="size-3.5 shrink-0" aria-hidden />
        {broken === 'gone' ? (
          <span>{name}: not in your workspace any more</span>
        ) : (
          <WorkspaceLink path={path}>{name}</WorkspaceLink>
        )}
      </span>
    )
  return (
    <button
      type="button"
      aria-label={`Open ${name}`}
      data-testid="workspace-image"
      onClick={() => openFile(path)}
      className="block w-full overflow-hidden rounded-lg border border-line bg-panel"
    >
      <img
        src={fileUrl(path)}
        alt={name}
        loading="lazy"
        onError={() => void findOut()}
        // A height of its own, so that nothing moves when the picture comes.
        className="h-80 w-full object-scale-down max-sm:h-56"
      />
    </button>
  )
}
