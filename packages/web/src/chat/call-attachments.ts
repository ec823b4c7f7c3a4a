/** What a call gave to look at beside its text. Its maker is a tool or somebody's server: nothing is loaded or opened by itself. */
import { imageSrc } from '../net/images.ts'
import type { ToolCallContent } from '@sandlot/shared/call'

export interface AttachedLink {
  url: string
  name: string
  /** Where it leads, for whoever should know before clicking. */
  host: string
}

export interface Attachments {
  links: AttachedLink[]
  /** What to load. */
  images: string[]
}

export function attachmentsOf(content: readonly ToolCallContent[]): Attachments {
  const links: AttachedLink[] = []
  const images: string[] = []
  for (const item of content) {
    if (item.type !== 'content') continue
    const block = item.content
    if (block.type === 'resource_link') {
      const url = URL.parse(block.uri)
      if (url !== null && (url.protocol === 'https:' || url.protocol === 'http:'))
        links.push({ url: url.href, name: block.name, host: url.host })
    } else if (block.type === 'image') {
      const src = imageSrc(block)
      if (src !== undefined) images.push(src)
    }
  }
  return { links, images }
}
