/** Hooks of a chat's page for the list: mark as read, and begin chats in projects. */
import type { Mode } from '@sandlot/shared/chat/mode'
import { Folder, X } from 'lucide-react'
import { useEffect, useEffectEvent } from 'react'
import { useChat, useChatState } from './chat-context.ts'
import { type ModelChoice, aboutModel } from './model-choice.ts'
import type { SendOptions } from './chat.ts'
import { IconButton } from '../ui/button.tsx'
import { Revealed } from '../ui/revealed.tsx'
import { beginIn, mark, useChatListState, useNewIn } from './chat-list-state.ts'

/** The chat on the screen is seen while the page is. */
export function useSeen(sessionId: string | null): void {
  const unread = useChatState((state) => {
    const summary = state.sessions?.find((known) => known.sessionId === sessionId)
    return summary?.unread === true && state.views[sessionId ?? '']?.sync === 'fresh'
  })
  useEffect(() => {
    if (!unread || sessionId === null) return
    const markIfVisible = (): void => {
      if (document.visibilityState === 'visible') void mark({ sessionIds: [sessionId], seen: true })
    }
    markIfVisible()
    document.addEventListener('visibilitychange', markIfVisible)
    return () => document.removeEventListener('visibilitychange', markIfVisible)
  }, [unread, sessionId])
}

/**
 * A new chat begins as its project says. Answers what is sent with its first message; a mode that
 * is the project's own is the agent's to lower.
 */
export function useNewInProject(
  sessionId: string | null,
  chosen: { mode: Mode; setMode: (mode: Mode) => void; setModel: (model: ModelChoice) => void },
): Pick<SendOptions, 'project' | 'mode'> {
  const { me } = useChat()
  const project = useNewIn()
  const id = sessionId === null ? project?.id : undefined
  const begin = useEffectEvent(() => {
    chosen.setMode(project?.mode ?? me.defaultMode)
    const model = aboutModel(me, project?.model ?? '') === undefined ? me.model.name : project?.model
    chosen.setModel({ model: model ?? me.model.name, thoughtLevel: null })
  })
  const known = project !== null
  useEffect(() => {
    if (sessionId === null) begin()
    // Its own page: what is begun next is in no project.
    else if (known) beginIn(null)
  }, [sessionId, id, known])
  if (project === null || sessionId !== null) return { mode: chosen.mode }
  return { project: project.id, mode: chosen.mode === project.mode ? undefined : chosen.mode }
}

/** Above the first message of a chat in a project. */
export function InProject() {
  const project = useNewIn()
  const known = useChatListState(({ projects }) => projects !== null)
  if (project === null || !known) return null
  return (
    <p className="mb-4 inline-flex max-w-full items-center gap-2 rounded-lg border border-line bg-panel py-1 pr-1 pl-3 text-sm text-muted">
      <Folder className="size-4 shrink-0 text-faint" aria-hidden />
      <span className="min-w-0 truncate">
        In the project <Revealed text={project.name} />
      </span>
      <IconButton label="In no project" onClick={() => beginIn(null)}>
        <X aria-hidden />
      </IconButton>
    </p>
  )
}
