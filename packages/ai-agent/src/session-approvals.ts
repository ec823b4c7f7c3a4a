/** The approvals of one session: a fold of its log, with the calls that wait on an answer and the clocks that end them. */
import {
  type PermissionOption,
  type SandlotEvent,
  type SessionEvent,
  isOutcome,
  sandlotEventOf,
} from '@sandlot/shared/events'
import type { ApprovalAnswer, CallApproval } from './tools/tool.ts'

/** `setTimeout` takes no more; a longer wait is set again when this one is over. */
const LONGEST_TIMER_MS = 2_147_483_647

interface Asked {
  toolCallId: string
  options: readonly PermissionOption[]
  expiresAt: number
  answer: ApprovalAnswer | undefined
}

export interface PendingApproval {
  toolCallId: string
  options: readonly PermissionOption[]
  expiresAt: number
}

export class Approvals {
  readonly #asked = new Map<string, Asked>()
  readonly #names = new Map<string, string>()
  readonly #allowedForSession = new Set<string>()
  readonly #waiting = new Map<string, PromiseWithResolvers<ApprovalAnswer>>()
  readonly #timers = new Map<string, NodeJS.Timeout>()
  readonly #now: () => number
  readonly #expire: (toolCallId: string) => void

  /** `expire` is called when nobody has answered in time; it stores that. */
  constructor(now: () => number, expire: (toolCallId: string) => void) {
    this.#now = now
    this.#expire = expire
  }

  /** Fold one stored event. */
  note(event: SessionEvent): void {
    if (event.sessionUpdate === 'tool_call') this.#names.set(event.toolCallId, event.name)
    if (isOutcome(event)) this.#over(event.toolCallId)
    const happened = sandlotEventOf(event)
    if (happened?.type === 'approval_asked') {
      const { toolCallId, options, expiresAt } = happened
      this.#asked.set(toolCallId, { toolCallId, options, expiresAt, answer: undefined })
    } else if (happened?.type === 'approval_answered') {
      this.#answered(happened)
    }
  }

  /** Start the clocks of everything that waits. Called once the log is folded, and after each asked approval. */
  startClocks(): void {
    for (const { toolCallId, expiresAt } of this.pending()) {
      if (this.#timers.has(toolCallId)) continue
      const wait = Math.min(Math.max(0, expiresAt - this.#now()), LONGEST_TIMER_MS)
      const timer = setTimeout(() => {
        this.#timers.delete(toolCallId)
        if (this.#now() >= expiresAt) this.#expire(toolCallId)
        else this.startClocks()
      }, wait)
      timer.unref()
      this.#timers.set(toolCallId, timer)
    }
  }

  stopClocks(): void {
    for (const timer of this.#timers.values()) clearTimeout(timer)
    this.#timers.clear()
  }

  /** What waits for the user, oldest first. */
  pending(): PendingApproval[] {
    return [...this.#asked.values()].filter((asked) => asked.answer === undefined)
  }

  find(toolCallId: string): (PendingApproval & { answer: ApprovalAnswer | undefined }) | undefined {
    return this.#asked.get(toolCallId)
  }

  /** True when the user allowed this tool until the session's end. */
  allowedForSession(toolName: string): boolean {
    return this.#allowedForSession.has(toolName)
  }

  /** The name of the tool of an announced call. */
  nameOf(callId: string): string {
    return this.#names.get(callId) ?? ''
  }

  /** The approval of one call, for the policy that waits on it. */
  of(toolCallId: string): CallApproval {
    const find = (): Asked | undefined => this.#asked.get(toolCallId)
    return {
      get state() {
        const asked = find()
        if (asked === undefined) return 'none'
        return asked.answer === undefined ? 'pending' : 'answered'
      },
      answer: () => {
        const answer = find()?.answer
        if (answer !== undefined) return Promise.resolve(answer)
        let waiting = this.#waiting.get(toolCallId)
        if (waiting === undefined) {
          waiting = Promise.withResolvers()
          this.#waiting.set(toolCallId, waiting)
        }
        return waiting.promise
      },
    }
  }

  #answered(event: Extract<SandlotEvent, { type: 'approval_answered' }>): void {
    const asked = this.#asked.get(event.toolCallId)
    if (asked === undefined) return
    const { allowed, by, optionId, reason } = event
    asked.answer = {
      allowed,
      by,
      ...(optionId === undefined ? {} : { optionId }),
      ...(reason === undefined ? {} : { reason }),
    }
    const option = asked.options.find((known) => known.optionId === optionId)
    if (allowed && option?.kind === 'allow_always') this.#allowedForSession.add(this.nameOf(event.toolCallId))
    this.#waiting.get(event.toolCallId)?.resolve(asked.answer)
    this.#over(event.toolCallId)
  }

  /** Nothing waits on this call any more. */
  #over(toolCallId: string): void {
    clearTimeout(this.#timers.get(toolCallId))
    this.#timers.delete(toolCallId)
    this.#waiting.delete(toolCallId)
    const asked = this.#asked.get(toolCallId)
    if (asked !== undefined) asked.answer ??= { allowed: false, by: 'cancel' }
  }
}
