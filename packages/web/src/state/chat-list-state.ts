/** State of the chat list next to the chats: projects, pending deletions, the selection. */
import { type Project, projectList } from '@sandlot/shared/chat/chats'
import { messageOf } from '@sandlot/shared/base/errors'
import { create } from 'zustand'
import { call } from '../net/call.ts'
import { showToast } from '../ui/toasts.tsx'
import type { ChatMarks } from '@sandlot/shared/chat/chats'

interface ChatListState {
  /** Null until they are known. */
  projects: readonly Project[] | null
  /** The project of the chat that is begun next. */
  newIn: string | null
  /** Chats whose deletion waits for the end of its undo. */
  doomed: ReadonlySet<string>
  /** Chats that are chosen; null: none are being chosen. */
  chosen: ReadonlySet<string> | null
}

export const useChatListState = create<ChatListState>(() => ({
  projects: null,
  newIn: null,
  doomed: new Set(),
  chosen: null,
}))

/** Reads them again. Failures are shown. */
export async function loadProjects(): Promise<void> {
  try {
    const projects = projectList.parse(await call('listProjects')).projects
    useChatListState.setState({ projects })
  } catch (error) {
    showToast(messageOf(error))
  }
}

/** The next new chat is in this project; null: in none. */
export function beginIn(project: string | null): void {
  useChatListState.setState({ newIn: project })
}

export function useNewIn(): Project | null {
  return useChatListState(({ projects, newIn }) => projects?.find(({ id }) => id === newIn) ?? null)
}

/** Marks chats; the service sends it to all tabs. Failures are shown. */
export async function mark(marks: ChatMarks): Promise<void> {
  try {
    await call('markChats', { body: marks })
  } catch (error) {
    showToast(messageOf(error))
  }
}

/** Begins to choose several, with this one. */
export function choose(sessionId: string): void {
  useChatListState.setState({ chosen: new Set([sessionId]) })
}

export function toggleChosen(sessionId: string): void {
  const { chosen } = useChatListState.getState()
  const next = new Set(chosen)
  if (!next.delete(sessionId)) next.add(sessionId)
  useChatListState.setState({ chosen: next })
}

export function chooseNone(): void {
  useChatListState.setState({ chosen: null })
}
