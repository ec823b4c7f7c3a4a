import { useMemo } from 'react'
import type { ToolCallContent } from '@sandlot/shared/call'
import { attachmentsOf } from './call-attachments.ts'
import { MessageImages } from './message-images.tsx'

/** The images that a call made, also while its card is folded: they are what one came to see. */
export function CallImages(props: { content: readonly ToolCallContent[]; title: string }) {
  const { images } = useMemo(() => attachmentsOf(props.content), [props.content])
  if (images.length === 0) return null
  return <MessageImages images={images} what={`from ${props.title}`} className="px-3 pt-1 pb-3" />
}
