/**
 * Attachments of a call's result. They come from a tool or a foreign server: nothing is loaded or
 * opened by itself.
 */
import { imageSrc } from '../../net/images.ts'
import type { MessageImage } from '@sandlot/shared/chat/images'
import type { ToolCallContent } from '@sandlot/shared/chat/call'
import type { CallEntry } from '@sandlot/shared/transcript/entries'
import { pathInWorkspace } from '../../net/files.ts'
import { isPreviewed } from '../../preview/kinds.ts'

interface AttachedLink {
  url: string
  name: string
  /** The target, shown before a click. */
  host: string
}

interface Attachments {
  links: AttachedLink[]
  /** Images that can be loaded. */
  images: MessageImage[]
}

export function attachmentsOf(content: readonly ToolCallContent[]): Attachments {
  const links: AttachedLink[] = []
  const images: MessageImage[] = []
  for (const item of content) {
    if (item.type !== 'content') continue
    const block = item.content
    if (block.type === 'resource_link') {
      const url = URL.parse(block.uri)
      if (url !== null && (url.protocol === 'https:' || url.protocol === 'http:'))
        links.push({ url: url.href, name: block.name, host: url.host })
    } else if (block.type === 'image') {
      if (imageSrc(block) !== undefined) images.push(block)
    }
  }
  return { links, images }
}

/** Files written by a call to be looked at rather than read, relative to the workspace. */
export function filesWritten({ status, content }: CallEntry): string[] {
  if (status !== 'completed') return []
  const paths = content.flatMap((item) => (item.type === 'diff' ? (pathInWorkspace(item.path) ?? []) : []))
  return [...new Set(paths)].filter(isPreviewed)
}
