import { useSyncExternalStore } from 'react'
import { type Attached, blockedBy } from '../../state/attachments.ts'
import { useChat } from '../chat-context.ts'

/** The images of one composer, and what can be done with them. */
export interface ComposerImages extends Attached {
  /** Why the message cannot be sent now; null when it can. */
  blocked: string | null
  add: (files: readonly File[]) => void
  remove: (key: string) => void
  /** Their message is sent. */
  clear: () => void
  /** Its picture could not be shown. */
  lost: (key: string) => void
}

/** `refusal`: why this chat takes no images; null: it takes them. */
export function useAttachments(sessionId: string | null, refusal: string | null): ComposerImages {
  const { attachments } = useChat()
  const { items, problem } = useSyncExternalStore(attachments.subscribe, () => attachments.of(sessionId))
  return {
    items,
    // The model may have been chosen after they were attached.
    problem: items.length > 0 ? (refusal ?? problem) : problem,
    blocked: blockedBy(items, refusal),
    add: (files) => void attachments.add(sessionId, files, refusal),
    remove: (key) => attachments.remove(sessionId, key),
    clear: () => attachments.clear(sessionId),
    lost: (key) => attachments.lost(sessionId, key),
  }
}
