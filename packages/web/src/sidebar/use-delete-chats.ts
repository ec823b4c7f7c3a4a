/** Deletes chats after a while in which it can be taken back. */
import { messageOf } from '@sandlot/shared/base/errors'
import { useCallback } from 'react'
import { useLocation } from 'wouter'
import { useChat } from '../state/chat-context.ts'
import { call } from '../net/call.ts'
import type { Chat } from '../state/chat.ts'
import { showToast } from '../ui/toasts.tsx'
import { useChatListState } from '../state/chat-list-state.ts'

/** Until they are deleted, in seconds. */
const UNDO_SECONDS = 10

/** Call with the ids; each list leaves them out at once. */
export function useDeleteChats(): (sessionIds: readonly string[]) => void {
  const { chat } = useChat()
  const [path, navigate] = useLocation()
  return useCallback(
    (sessionIds) => {
      const { sessions, activeId } = chat.store.getState()
      const [only] = sessionIds
      if (only === undefined) return
      const title = sessions?.find(({ sessionId }) => sessionId === only)?.title ?? 'New chat'
      const leaves = activeId !== null && sessionIds.includes(activeId)
      setDoomed(sessionIds, true)
      if (leaves) navigate('/')
      const undo = deleteLater(chat, sessionIds)
      showToast(sessionIds.length === 1 ? `“${title}” deleted.` : `${sessionIds.length} chats deleted.`, {
        seconds: UNDO_SECONDS,
        action: {
          label: 'Undo',
          onClick: () => {
            if (!undo()) return showToast('Too late to undo.')
            setDoomed(sessionIds, false)
            if (leaves) navigate(path)
          },
        },
      })
    },
    [chat, path, navigate],
  )
}

function setDoomed(sessionIds: readonly string[], isDoomed: boolean): void {
  const doomed = new Set(useChatListState.getState().doomed)
  for (const id of sessionIds)
    if (isDoomed) doomed.add(id)
    else doomed.delete(id)
  useChatListState.setState({ doomed })
}

/** Returns what takes it back; false: it was too late. A page that is closed deletes at once. */
function deleteLater(chat: Chat, sessionIds: readonly string[]): () => boolean {
  let begun = false
  const begin = (): void => {
    if (begun) return
    begun = true
    stop()
    void deleteAll(chat, sessionIds)
  }
  const timer = setTimeout(begin, UNDO_SECONDS * 1000)
  addEventListener('pagehide', begin)
  const stop = (): void => {
    clearTimeout(timer)
    removeEventListener('pagehide', begin)
  }
  return () => {
    if (begun) return false
    begun = true
    stop()
    return true
  }
}

async function deleteAll(chat: Chat, sessionIds: readonly string[]): Promise<void> {
  const results = await Promise.allSettled(sessionIds.map((id) => call('deleteChat', { params: { id } })))
  for (const [index, result] of results.entries()) {
    const id = sessionIds[index] ?? ''
    if (result.status === 'fulfilled') chat.forget(id)
    else showToast(messageOf(result.reason))
  }
  setDoomed(sessionIds, false)
}
