/** What every part of the signed-in app can reach: the chat of this tab and the person. */
import type { Me } from '@sandlot/shared/api'
import { createContext, useContext } from 'react'
import { useStore } from 'zustand'
import type { UnsentStorage } from '../lib/storage.ts'
import type { Attachments } from '../state/attachments.ts'
import type { Chat } from '../state/chat.ts'
import type { ChatState } from '../state/chat-state.ts'

export interface ChatContext {
  chat: Chat
  /** Images that wait in the composers. */
  attachments: Attachments
  /** Where drafts are kept. */
  unsent: UnsentStorage
  me: Me
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
