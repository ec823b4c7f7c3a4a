/** A page (HTML) of the workspace, in an origin of its own: nothing of it gets out. */
import { MAX_SHOWN_PAGE_BYTES } from '@sandlot/shared/workspace/files'
import { revealedText } from '../../lib/invisible.ts'
import { CannotShow, Note, type ViewProps } from '../parts.tsx'

export default function PageView({ file }: ViewProps) {
  if (file.size > MAX_SHOWN_PAGE_BYTES)
    return <CannotShow>This page is too large to preview. Download it instead.</CannotShow>
  const url = `/api/files/preview?path=${encodeURIComponent(file.path)}&v=${encodeURIComponent(file.version)}`
  return (
    <>
      <Note>This page runs isolated: no network, no access to Sandlot, no other files.</Note>
      <iframe
        // A frame keeps its history: another version gets another frame.
        key={url}
        src={url}
        title={revealedText(file.path)}
        sandbox="allow-scripts"
        referrerPolicy="no-referrer"
        // A page that sets no colours means black on white.
        className="min-h-0 w-full flex-1 bg-white"
        style={{ colorScheme: 'light' }}
      />
    </>
  )
}
