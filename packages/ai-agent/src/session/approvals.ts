/**
 * The approvals of one session: a fold of its log, with the calls that wait on an answer and the
 * clocks that end them.
 */
import type { PermissionOption, SandlotEvent } from '@sandlot/shared/chat/sandlot-event'
import {
  isOutcome,
  makeSandlotEvent,
  metaOf,
  sandlotEventOf,
  type SessionEvent,
} from '@sandlot/shared/chat/events'
import {
  ANSWER_OPTION,
  problemsOfAnswer,
  type Question,
  type QuestionContent,
} from '@sandlot/shared/chat/question'
import type { NewAudit } from '@sandlot/shared/admin/audit'
import { isAboutHost, type Remembered, type Rule } from '@sandlot/shared/chat/rules'
import { SandlotError, messageOf } from '@sandlot/shared/base/errors'
import { holdsAt } from '../approval/rule-registry.ts'
import { ToolError } from '../tools/tool-error.ts'
import { checkArguments, toolParameters } from '../tools/tool-schema.ts'
import { pendingApprovals } from '@sandlot/shared/chat/pending-approvals'
import type { Author } from '@sandlot/shared/chat/shares'
import type { UserRule } from '@sandlot/storage/sessions/rules'
import type { ApprovalAnswer, ApprovedLink, CallApproval, Tool } from '../tools/tool.ts'
import { rulingOf } from './batch.ts'
import type { SessionCore } from './core.ts'

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

  /** What waits for the user, oldest first. */
  pending(): PendingApproval[] {
    return [...this.#asked.values()].filter((asked) => asked.answer === undefined)
  }

  find(toolCallId: string): (PendingApproval & { answer: ApprovalAnswer | undefined }) | undefined {
    return this.#asked.get(toolCallId)
  }

  /** What the user allowed until the end of the session, or of this prompt. */
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

const ONLY_THIS_CALL =
  'You may allow or deny this call as it is. To change it, or to have an answer remembered, its owner has to let you take part.'

export type ListedApproval = ReturnType<typeof pendingApprovals>[number]

export interface AnswerOptions {
  /** For the model. */
  reason?: string | undefined
  /** What was filled in, of a question. */
  content?: QuestionContent | undefined
  /** The call's arguments as the person changed them. */
  input?: Record<string, unknown> | undefined
  /** False: an answer that makes a rule for later sessions is refused. */
  mayMakeRules?: boolean
  /** False: they answer this one call as it is; what goes beyond that is refused. */
  takesPart?: boolean
  /** Who answers; absent: the owner. */
  author?: Author | undefined
  /** The same for the audit log. */
  actor?: Pick<NewAudit, 'who' | 'from'> | undefined
}

/**
 * Answers to the approvals of one session: by a person, by expiry, by a Stop. The first stored
 * one wins.
 */
export class Answers {
  readonly #core: SessionCore

  constructor(core: SessionCore) {
    this.#core = core
  }

  /** As `Session.answer`. */
  answer(
    toolCallId: string,
    optionId: string,
    { reason, content, input, mayMakeRules = true, takesPart = true, author, actor }: AnswerOptions = {},
  ): Promise<{ answered: boolean; by?: string }> {
    const { approvals, parts, id, userId } = this.#core
    return this.#core.inTurn(async () => {
      const asked = approvals.find(toolCallId)
      if (asked === undefined) throw new SandlotError('not_found', 'Nobody was asked about this call.')
      if (asked.answer !== undefined) return { answered: false, by: asked.answer.by }
      const option = asked.options.find((known) => known.optionId === optionId)
      if (option === undefined) {
        const known = asked.options.map((one) => one.optionId).join(', ')
        throw new SandlotError('bad_request', `“${optionId}” is no answer here; the answers are ${known}.`)
      }
      if (option.remembers?.scope === 'always' && !mayMakeRules)
        throw new SandlotError(
          'forbidden',
          'Only the owner makes rules, on the page. Choose an answer that remembers nothing.',
        )
      // Either decides on more than the call that was read: as much as a message does.
      if (!takesPart && (input !== undefined || option.remembers !== undefined))
        throw new SandlotError('forbidden', ONLY_THIS_CALL)
      const allowed = option.kind === 'allow_once' || option.kind === 'allow_always'
      if (input !== undefined) await this.#checkEdit(asked, option, input)
      const said = {
        reason,
        input,
        ...(allowed ? filledIn(asked.question, optionId, content) : {}),
      }
      const { remembers } = option
      try {
        const rules = allowed && remembers !== undefined ? this.#kept(remembers) : []
        const audit = this.#lineOf(
          toolCallId,
          { allowed, choice: optionId, changed: input !== undefined },
          rules,
        )
        const line = { ...(actor ?? { who: { id: userId, name: userId } }), ...audit }
        await this.#store(toolCallId, { allowed, optionId, by: 'user', ...said }, rules, { author, line })
      } catch (error) {
        if (!(error instanceof SandlotError) || error.code !== 'conflict') throw error
        const row = await parts.store.approval(id, toolCallId)
        return { answered: false, ...(row?.by == null ? {} : { by: row.by }) }
      }
      if (allowed && remembers !== undefined) await this.#answerByRules()
      return { answered: true, by: 'user' }
    })
  }

  /**
   * Throws `bad_request` where the changed call cannot run, and `forbidden` with the rule's
   * sentence where it must not: the question stays.
   */
  async #checkEdit(
    { toolCallId, question }: PendingApproval,
    option: PermissionOption,
    input: Record<string, unknown>,
  ): Promise<void> {
    const { parts, userId, id, running, approvals, effectiveMode: mode } = this.#core
    if (question !== undefined || option.kind !== 'allow_once')
      throw new SandlotError(
        'bad_request',
        'Only a call that is allowed once can be changed: choose allow_once, or send no input.',
      )
    const name = approvals.nameOf(toolCallId)
    const tool = await this.#toolOf(toolCallId)
    if (tool === undefined)
      throw new SandlotError(
        'bad_request',
        `The tool ${name} is not there now, so its call cannot be changed.`,
      )
    const checked = await checkArguments(tool.input, input, userId).catch((error: unknown) => {
      if (error instanceof ToolError) return { problems: [error.message] }
      throw error
    })
    if ('problems' in checked)
      throw new SandlotError('bad_request', `The changed call does not fit: ${checked.problems.join('; ')}.`)
    const call = { callId: toolCallId, name, args: checked.args, tool }
    const at = { sessionId: id, promptId: running?.promptId ?? '' }
    const { verdict, why } = await rulingOf({ call, by: undefined }, { userId, at, approvals, mode, parts })
    if (verdict === 'deny' || verdict === 'block')
      throw new SandlotError(
        'forbidden',
        `The changed call is not allowed here: ${why.map(({ part, because }) => `${part} ${because}`).join('; ')}.`,
      )
  }

  /** What waits, with the schema of its arguments where its tool is there. */
  waiting(): Promise<ListedApproval[]> {
    const open = pendingApprovals(this.#core.log)
    return Promise.all(
      open.map(async (one) => {
        const tool = one.question === undefined ? await this.#toolOf(one.callId) : undefined
        return tool === undefined ? one : { ...one, schema: toolParameters(tool.input) }
      }),
    )
  }

  /** The tool of an announced call: its prompt's, or after a restart the one of that name now. */
  async #toolOf(toolCallId: string): Promise<Tool | undefined> {
    const { running, parts, userId, released, id, approvals } = this.#core
    const judged = running?.judged.get(toolCallId)
    if (judged !== undefined) return judged.call.tool
    return (await parts.tools(userId, released, id)).getTool(approvals.nameOf(toolCallId))
  }

  /**
   * What the store keeps of it. Of what holds for a session only hosts: the way out of the sandbox
   * reads them there.
   */
  #kept({ scope, rules }: Remembered): UserRule[] {
    const { parts, id } = this.#core
    if (scope === 'prompt') return []
    if (scope === 'always') return rules.map((match) => parts.rules.make('allow', match))
    return rules
      .filter(isAboutHost)
      .map((match) => parts.rules.make('allow', match, { endsWith: { sessionId: id } }))
  }

  /** The tool and the choice; of what the call was about only what a rule keeps. */
  #lineOf(toolCallId: string, choice: object, rules: readonly UserRule[]) {
    const tool = this.#core.approvals.nameOf(toolCallId)
    const kept = rules.length === 0 ? {} : { rules: rules.map(({ match }) => match) }
    return {
      what: 'approval_answered',
      whom: { id: this.#core.id, name: tool },
      after: { ...choice, call: toolCallId, ...kept },
    } as const
  }

  /** What was just remembered answers the other questions that it covers. Only inside `inTurn`. */
  async #answerByRules(): Promise<void> {
    const { running, approvals, userId, effectiveMode: mode, parts } = this.#core
    if (running === undefined) return
    const at = { sessionId: this.#core.id, promptId: running.promptId }
    for (const { toolCallId } of approvals.pending()) {
      const judged = running.judged.get(toolCallId)
      if (judged === undefined) continue
      const { verdict } = await rulingOf(judged, { userId, at, approvals, mode, parts })
      if (verdict === 'allow') await this.#store(toolCallId, { allowed: true, by: 'rule' })
    }
  }

  /** As `Session.refuse`. */
  refuse(toolCallId: string, by: 'cancel' | 'unattended' | 'expiry'): Promise<void> {
    return this.#core.inTurn(async () => {
      if (this.#core.approvals.of(toolCallId).state !== 'pending') return
      await this.#store(toolCallId, { allowed: false, by })
    })
  }

  /**
   * An approval of an unattended prompt, or of one that is being stopped, is denied at once. Only
   * inside `inTurn`.
   */
  async denyUnanswerable(): Promise<void> {
    const { running, approvals } = this.#core
    const stopping = running?.stop.signal.aborted === true
    if (!stopping && running?.unattended !== true) return
    for (const { toolCallId } of approvals.pending()) {
      await this.#store(toolCallId, { allowed: false, by: stopping ? 'cancel' : 'unattended' })
    }
  }

  /** No answer came in time. Never rejects. */
  async expire(toolCallId: string): Promise<void> {
    try {
      await this.refuse(toolCallId, 'expiry')
    } catch (error) {
      const fields = { sessionId: this.#core.id, toolCallId, error: messageOf(error) }
      this.#core.parts.log.warn(fields, 'an approval could not expire')
    }
  }

  /** `rules` are kept in the same transaction. */
  async #store(
    toolCallId: string,
    answer: ApprovalAnswer,
    rules: readonly UserRule[] = [],
    { author, line }: { author?: Author | undefined; line?: NewAudit } = {},
  ): Promise<void> {
    const call = this.#core.log.find(
      (event) => event.sessionUpdate === 'tool_call' && event.toolCallId === toolCallId,
    )
    const { promptId, turn } = call === undefined ? {} : metaOf(call)
    const fields = { promptId, turn, author }
    const event = { type: 'approval_answered', toolCallId, ...answer } as const
    const more = { ...(rules.length > 0 && { rules }), ...(line && { audit: [line] }) }
    await this.#core.store([makeSandlotEvent(event, fields, this.#core.parts.now())], more)
  }
}

/** Throws `bad_request` when the form is not filled in as it was asked for. */
function filledIn(
  asked: Question | undefined,
  optionId: string,
  content: QuestionContent = {},
): { content?: QuestionContent } {
  if (asked === undefined || optionId !== ANSWER_OPTION) return {}
  const problems = problemsOfAnswer(asked, content)
  if (problems.length > 0) throw new SandlotError('bad_request', problems.join(' '))
  return { content }
}
