/** The images of a message, small; a click opens one as large as the window. */
import type { MessageImage } from '@sandlot/shared/chat/images'
import { ImageOff } from 'lucide-react'
import { useState } from 'react'
import { cn } from '../../lib/cn.ts'
import { imageSrc } from '../../net/images.ts'
import { EnlargedImage } from '../../ui/enlarged-image.tsx'

/** `what` completes the alternative text: “Image 1 of 2, attached to your message”. */
export function MessageImages(props: { images: readonly MessageImage[]; what: string; className?: string }) {
  const { images } = props
  return (
    <ul className={cn('flex flex-wrap gap-2', props.className)} data-testid="message-images">
      {images.map((image, index) => (
        // The order is the person's, and the same image may be there twice.
        // oxlint-disable-next-line react/no-array-index-key
        <li key={index} className="max-w-full">
          <Thumbnail
            src={imageSrc(image)}
            alt={
              images.length === 1
                ? `Image, ${props.what}`
                : `Image ${index + 1} of ${images.length}, ${props.what}`
            }
            alone={images.length === 1}
          />
        </li>
      ))}
    </ul>
  )
}

function Thumbnail(props: { src: string | undefined; alt: string; alone: boolean }) {
  const { src, alt } = props
  const [broken, setBroken] = useState(false)
  // A size of its own, so that nothing moves when the picture comes.
  const size = props.alone ? 'h-48 w-72 max-w-full' : 'size-32'
  if (src === undefined || broken) {
    return (
      <span
        className={cn(
          'flex flex-col items-center justify-center gap-1.5 rounded-xl border border-line bg-panel px-4 text-xs text-muted',
          size,
        )}
      >
        <ImageOff className="size-5" aria-hidden /> Can’t show this image
      </span>
    )
  }
  return (
    <EnlargedImage
      src={src}
      alt={alt}
      className={cn('block overflow-hidden rounded-xl border border-line bg-panel', size)}
    >
      <img
        src={src}
        alt={alt}
        loading="lazy"
        onError={() => setBroken(true)}
        className={cn('size-full', props.alone ? 'object-contain' : 'object-cover')}
      />
    </EnlargedImage>
  )
}
