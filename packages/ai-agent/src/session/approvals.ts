/**
 * The approvals of one session: a fold of its log, with the calls that wait on an answer and the
 * clocks that end them.
 */
import type { PermissionOption, SandlotEvent } from '@sandlot/shared/chat/sandlot-event'
import { isOutcome, metaOf, sandlotEventOf, type SessionEvent } from '@sandlot/shared/chat/events'
import type { Question } from '@sandlot/shared/chat/question'
import { isAboutHost, type Remembered, type Rule } from '@sandlot/shared/chat/rules'
import { holdsAt } from '../approval/rule-registry.ts'
import type { pendingApprovals } from '@sandlot/shared/chat/pending-approvals'
import type { ApprovalAnswer, ApprovedLink, CallApproval } from '../tools/tool.ts'

/** `setTimeout` takes no more; a longer wait is set again when this one is over. */
const LONGEST_TIMER_MS = 2_147_483_647

interface Asked {
  toolCallId: string
  options: readonly PermissionOption[]
  expiresAt: number
  question: Question | undefined
  links: readonly ApprovedLink[] | undefined
  answer: ApprovalAnswer | undefined
}

export interface PendingApproval {
  toolCallId: string
  options: readonly PermissionOption[]
  expiresAt: number
  /** It asks for something, not for approval. */
  question?: Question | undefined
}

export class Approvals {
  readonly #asked = new Map<string, Asked>()
  readonly #names = new Map<string, string>()
  readonly #sessionRules: Rule[] = []
  readonly #waiting = new Map<string, PromiseWithResolvers<ApprovalAnswer>>()
  readonly #timers = new Map<string, NodeJS.Timeout>()
  readonly #sessionId: string
  readonly #now: () => number
  readonly #expire: (toolCallId: string) => void

  /** `expire` is called without an answer in time; it stores that. */
  constructor(sessionId: string, now: () => number, expire: (toolCallId: string) => void) {
    this.#sessionId = sessionId
    this.#now = now
    this.#expire = expire
  }

  /** Fold one stored event. */
  note(event: SessionEvent): void {
    if (event.sessionUpdate === 'tool_call') this.#names.set(event.toolCallId, event.name)
    if (isOutcome(event)) this.#over(event.toolCallId)
    const happened = sandlotEventOf(event)
    if (happened?.type === 'approval_asked') {
      const { toolCallId, options, expiresAt, question, links } = happened
      this.#asked.set(toolCallId, { toolCallId, options, expiresAt, question, links, answer: undefined })
    } else if (happened?.type === 'approval_answered') {
      this.#answered(happened, metaOf(event))
    }
  }

  /**
   * Start the clocks of everything that waits. Called once the log is folded, and after each asked
   * approval.
   */
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

  /** Approvals pending for the user, oldest first. */
  pending(): PendingApproval[] {
    return [...this.#asked.values()].filter((asked) => asked.answer === undefined)
  }

  find(toolCallId: string): (PendingApproval & { answer: ApprovalAnswer | undefined }) | undefined {
    return this.#asked.get(toolCallId)
  }

  /** Rules that the user allowed until the end of the session, or of this prompt. */
  rulesAt(at: { sessionId: string; promptId: string }): readonly Rule[] {
    return this.#sessionRules.filter((rule) => holdsAt(rule, at))
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
      get question() {
        return find()?.question !== undefined
      },
      get links() {
        return find()?.links ?? []
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

  #answered(
    event: Extract<SandlotEvent, { type: 'approval_answered' }>,
    { at, promptId }: { at: number; promptId?: string | undefined },
  ): void {
    const asked = this.#asked.get(event.toolCallId)
    if (asked === undefined) return
    const { allowed, by, optionId, reason, content, input } = event
    asked.answer = {
      allowed,
      by,
      optionId,
      reason,
      content,
      input,
    }
    const option = asked.options.find((known) => known.optionId === optionId)
    const scope = option?.remembers?.scope
    if (allowed && option?.remembers !== undefined && scope !== 'always')
      this.#remember(event.toolCallId, option.remembers, at, scope === 'prompt' ? promptId : undefined)
    this.#waiting.get(event.toolCallId)?.resolve(asked.answer)
    this.#over(event.toolCallId)
  }

  /** `promptId`: it ends with this prompt. */
  #remember(
    toolCallId: string,
    { rules }: Remembered,
    createdAt: number,
    promptId: string | undefined,
  ): void {
    const endsWith = promptId === undefined ? undefined : { sessionId: this.#sessionId, promptId }
    for (const [index, match] of rules.entries()) {
      // The store keeps these: they are listed there, and can be revoked before the session's end.
      if (isAboutHost(match)) continue
      const id = `${toolCallId}:${index + 1}`
      this.#sessionRules.push({ id, effect: 'allow', match, origin: 'session', createdAt, endsWith })
    }
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

export type ListedApproval = ReturnType<typeof pendingApprovals>[number]
