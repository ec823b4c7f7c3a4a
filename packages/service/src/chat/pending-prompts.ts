/** One reader's prompts, from their submission to the agent's answer: each is accepted once, and done once. */
import type { ServerFrame } from '@sandlot/shared/frames'
import type { StopReason } from '@sandlot/shared/reasons'

export interface PendingPrompt {
  /** Known once it is accepted. */
  promptId?: string
  done: boolean
}

export class PendingPrompts {
  readonly #send: (frame: ServerFrame) => void
  /** By request id. */
  readonly #pending = new Map<string, PendingPrompt>()

  /** `send` must not throw or wait. */
  constructor(send: (frame: ServerFrame) => void) {
    this.#send = send
  }

  add(requestId: string): PendingPrompt {
    const prompt: PendingPrompt = { done: false }
    this.#pending.set(requestId, prompt)
    return prompt
  }

  remove(requestId: string, prompt: PendingPrompt): void {
    // Sent again meanwhile, it is another one's.
    if (this.#pending.get(requestId) === prompt) this.#pending.delete(requestId)
  }

  /** Told once for each submission, whether the agent says so at once or only with the end. */
  accepted(requestId: string, promptId: string, sessionId: string): void {
    const prompt = this.#pending.get(requestId)
    if (prompt === undefined || prompt.promptId !== undefined) return
    prompt.promptId = promptId
    this.#send({ type: 'ai_chat_accepted', requestId, sessionId, promptId })
  }

  /** By the event, which is told of every prompt, whoever submitted it. */
  ended(sessionId: string, promptId: string, stopReason: StopReason): void {
    for (const prompt of this.#pending.values()) if (prompt.promptId === promptId) prompt.done = true
    this.#send({ type: 'ai_chat_done', sessionId, promptId, stopReason })
  }

  /** By the answer, which repeats the end; should it come first, or alone, this is what says it. */
  answered(sessionId: string, promptId: string, stopReason: StopReason): void {
    for (const prompt of this.#pending.values()) {
      if (prompt.promptId !== promptId || prompt.done) continue
      prompt.done = true
      this.#send({ type: 'ai_chat_done', sessionId, promptId, stopReason })
    }
  }
}
