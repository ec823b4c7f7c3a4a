import { useSyncExternalStore } from 'react'
import { type Attached, type Refusals, blockedBy } from '../../state/attachments.ts'
import { useChat } from '../../state/chat-context.ts'

/** Attachments of one composer, and actions on them. */
export interface ComposerAttachments extends Attached {
  refusals: Refusals
  /** Why the message cannot be sent now; null when it can. */
  blocked: string | null
  /** Resolves with the keys of those that were taken. */
  add: (files: readonly File[]) => Promise<string[]>
  remove: (key: string) => void
  /** Their message is sent. */
  clear: () => void
  /** Its picture could not be shown. */
  lost: (key: string) => void
}

export function useAttachments(sessionId: string | null, refusals: Refusals): ComposerAttachments {
  const { attachments } = useChat()
  const { items, problem } = useSyncExternalStore(attachments.subscribe, () => attachments.of(sessionId))
  return {
    items,
    refusals,
    // The model may have been chosen after they were attached.
    problem: items.some(({ preview }) => preview !== null) ? (refusals.images ?? problem) : problem,
    blocked: blockedBy(items, refusals.images),
    add: (files) => attachments.add(sessionId, files, refusals),
    remove: (key) => attachments.remove(sessionId, key),
    clear: () => attachments.clear(sessionId),
    lost: (key) => attachments.lost(sessionId, key),
  }
}
