/** The branches of the chat on the screen: which one is shown, and how another is begun. */
import { type PromptPlace, branchTo, shownBranch } from '@sandlot/shared/transcript/branches'
import type { MessageEntry } from '@sandlot/shared/transcript/entries'
import type { Transcript } from '@sandlot/shared/transcript/transcript'
import { createContext, useContext, useMemo, useState } from 'react'
import type { PendingMessage } from '../../state/outbox.ts'
import { useChat, useSettledView } from '../../state/chat-context.ts'
import { useReading } from '../../state/reading.ts'
import { type Said, sayAgain } from './say-again.ts'

interface Branches {
  readonly prompts: readonly PromptPlace[]
  /** Show the newest branch that leads through this prompt; null: the newest of all. */
  choose: (promptId: string | null) => void
  /**
   * In place of what was said in this prompt, from where it was said. `model`: that is asked, from
   * now on. Undefined: nothing can be said now, or by this reader.
   */
  resend: ((promptId: string, said: Said, model?: string) => Promise<void>) | undefined
}

const Context = createContext<Branches>({ prompts: [], choose: () => undefined, resend: undefined })
export const BranchesProvider = Context.Provider

export function useBranches(): Branches {
  return useContext(Context)
}

/**
 * The shown branch, stored for this reader, and the prompt that the next message follows
 * (undefined: the newest). While a message that branches off is on its way, everything before it is
 * shown.
 */
export function useShownBranch(
  sessionId: string | null,
  { prompts, prompt }: Transcript,
  outbox: readonly PendingMessage[],
): { path: readonly string[]; follows: string | undefined; branches: Branches } {
  const { chat, unsent } = useChat()
  const storage = unsent(sessionId)
  const key = `sandlot.branch.${sessionId ?? 'new'}`
  const [chosen, setChosen] = useState(() => storage.get(key))
  const pending = outbox.findLast(({ follows }) => follows !== undefined)?.follows
  const path = useMemo(
    () => (pending === undefined ? shownBranch(prompts, chosen) : branchTo(prompts, pending ?? '')),
    [prompts, chosen, pending],
  )
  const isRunning = prompt !== null
  const branches = useMemo<Branches>(() => {
    const choose = (promptId: string | null) => {
      setChosen(promptId)
      if (promptId === null) storage.remove(key)
      else storage.set(key, promptId)
    }
    const resend = async (promptId: string, said: Said, model?: string) => {
      if (sessionId === null) return
      const follows = prompts.find(({ id }) => id === promptId)?.follows
      // The branch that this begins is the newest.
      choose(null)
      await sayAgain(chat, sessionId, said, { follows, model })
    }
    return { prompts, choose, resend: isRunning ? undefined : resend }
    // `storage` is a new object in each call.
    // oxlint-disable-next-line react-hooks/exhaustive-deps
  }, [chat, sessionId, prompts, isRunning])
  const last = path.at(-1)
  return { path, follows: last === prompts.at(-1)?.id ? undefined : last, branches }
}

/** True if this reader may edit and resend the messages of this prompt: once nothing runs. */
export function useMayResend(sessionId: string, promptId: string | undefined): boolean {
  const { me } = useChat()
  const { access } = useReading()
  const { resend } = useBranches()
  const { transcript } = useSettledView(sessionId)
  if (promptId === undefined || resend === undefined || access === 'watch') return false
  return access === 'own' || saidIn(transcript, promptId)[0]?.author?.id === me.id
}

/** Messages of people in this prompt. */
export function saidIn({ entries }: Transcript, promptId: string): MessageEntry[] {
  return entries.filter(
    (entry): entry is MessageEntry =>
      entry.type === 'message' && entry.role === 'user' && entry.promptId === promptId,
  )
}
