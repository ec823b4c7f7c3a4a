/** A sound or a film, read as it is played. */
import { useState } from 'react'
import { revealedText } from '../../lib/invisible.ts'
import { fileUrl } from '../../net/files.ts'
import { CannotShow, type ViewProps } from '../parts.tsx'

export default function MediaView({ file }: ViewProps) {
  const [broken, setBroken] = useState(false)
  if (broken) return <CannotShow>Your browser can’t play this file. Download it instead.</CannotShow>
  const media = {
    src: `${fileUrl(file.path)}&v=${encodeURIComponent(file.version)}`,
    controls: true,
    preload: 'metadata',
    'aria-label': revealedText(file.path),
    onError: () => setBroken(true),
  }
  return (
    <div className="flex min-h-0 flex-1 items-center justify-center bg-sunken p-4">
      {file.kind === 'video' ? (
        // Films of a workspace come without a track of captions.
        // oxlint-disable-next-line jsx-a11y/media-has-caption
        <video {...media} playsInline className="max-h-full max-w-full rounded-lg bg-black shadow-2" />
      ) : (
        // oxlint-disable-next-line jsx-a11y/media-has-caption
        <audio {...media} className="w-full max-w-lg" />
      )}
    </div>
  )
}
