/** Context of the signed-in app: the chat of this tab and the person. */
import type { Me } from '@sandlot/shared/account/api'
import { createContext, useContext, useState } from 'react'
import { useStore } from 'zustand'
import type { UnsentStorage } from '../lib/storage.ts'
import type { Attachments } from './attachments.ts'
import type { Chat } from './chat.ts'
import { type ChatState, EMPTY_VIEW, type SessionView, isSettledAlike } from './chat-state.ts'

export interface ChatContext {
  chat: Chat
  /** Images that wait in the composers. */
  attachments: Attachments
  /** Storage of drafts. */
  unsent: UnsentStorage
  me: Me
  /** Fetches `me` again. */
  renewMe: () => Promise<void>
  /** Forget the person in this tab and show the sign-in page. */
  onSignedOut: () => void
}

const Context = createContext<ChatContext | null>(null)
export const ChatProvider = Context.Provider

export function useChat(): ChatContext {
  const value = useContext(Context)
  if (value === null) throw new Error('useChat outside of ChatProvider')
  return value
}

/** Part of the state; the component is drawn again only when that part changes. */
export function useChatState<T>(select: (state: ChatState) => T): T {
  return useStore(useChat().chat.store, select)
}

/**
 * The session as of its last settled event: for all that does not show text and output while they
 * grow, and so is not drawn again with each piece.
 */
export function useSettledView(sessionId: string | null): SessionView {
  const [select] = useState(() => {
    let settled = EMPTY_VIEW
    return (state: ChatState, id: string | null) => {
      const view = (id === null ? undefined : state.views[id]) ?? EMPTY_VIEW
      if (!isSettledAlike(settled, view)) settled = view
      return settled
    }
  })
  return useChatState((state) => select(state, sessionId))
}
