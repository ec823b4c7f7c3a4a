/**
 * Answers to the approvals of one session: checks and stores people's answers, and gives the others
 * itself: by rule, expiry, Stop, or because the prompt is unattended.
 */
import type { PermissionOption } from '@sandlot/shared/chat/sandlot-event'
import { makeSandlotEvent, metaOf } from '@sandlot/shared/chat/events'
import {
  type QuestionContent,
  ANSWER_OPTION,
  problemsOfAnswer,
  type Question,
} from '@sandlot/shared/chat/question'
import type { NewAudit } from '@sandlot/shared/admin/audit'
import { isAboutHost, type Remembered } from '@sandlot/shared/chat/rules'
import { SandlotError, messageOf } from '@sandlot/shared/base/errors'
import { ToolError } from '../tools/tool-error.ts'
import { checkArguments, toolParameters } from '../tools/tool-schema.ts'
import { pendingApprovals } from '@sandlot/shared/chat/pending-approvals'
import type { Author } from '@sandlot/shared/chat/shares'
import type { UserRule } from '@sandlot/storage/tables/records'
import type { ApprovalAnswer, Tool } from '../tools/tool.ts'
import { rulingOf } from './rulings.ts'
import type { SessionCore } from './core.ts'
import type { PendingApproval, ListedApproval } from './approvals.ts'

export interface AnswerOptions {
  /** For the model. */
  reason?: string | undefined
  /** The filled-in fields of a question. */
  content?: QuestionContent | undefined
  /** The call's arguments as the person changed them. */
  input?: Record<string, unknown> | undefined
  /** False: an answer that makes a rule for later sessions is refused. */
  mayMakeRules?: boolean
  /** False: they answer this one call as it is; what goes beyond that is refused. */
  takesPart?: boolean
  /** The user who answers; absent: the owner. */
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

  /** See `Session.answer`. */
  answer(
    toolCallId: string,
    optionId: string,
    { reason, content, input, mayMakeRules = true, takesPart = true, author, actor }: AnswerOptions = {},
  ): Promise<{ answered: boolean; by?: string }> {
    const { approvals, parts, id, userId } = this.#core
    return this.#core.inTurn(async () => {
      const asked = approvals.find(toolCallId)
      if (asked === undefined) throw new SandlotError('not_found', 'This call has no pending approval.')
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
        const rules = allowed && remembers !== undefined ? this.#userRules(remembers) : []
        const audit = this.#lineOf(
          toolCallId,
          { allowed, choice: optionId, changed: input !== undefined },
          rules,
        )
        const line = { ...(actor ?? { who: { id: userId, name: userId } }), ...audit }
        await this.#store(toolCallId, { allowed, optionId, by: 'user', ...said }, rules, { author, line })
      } catch (error) {
        if (!(error instanceof SandlotError) || error.code !== 'conflict') throw error
        const row = await parts.store.approvals.get(id, toolCallId)
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
        `The tool ${name} is not available now, so its call cannot be changed.`,
      )
    const checked = await checkArguments(tool.input, input, userId).catch((error: unknown) => {
      if (error instanceof ToolError) return { problems: [error.message] }
      throw error
    })
    if ('problems' in checked)
      throw new SandlotError('bad_request', `The changed call does not fit: ${checked.problems.join('; ')}.`)
    const call = { callId: toolCallId, name, args: checked.args, tool }
    const at = { sessionId: id, promptId: running?.promptId ?? '' }
    const { verdict, why } = await rulingOf(
      { call, by: undefined },
      { userId, at, approvals, mode, parts: parts.calls },
    )
    if (verdict === 'deny' || verdict === 'block')
      throw new SandlotError(
        'forbidden',
        `The changed call is not allowed here: ${why.map(({ part, because }) => `${part} ${because}`).join('; ')}.`,
      )
  }

  /** Pending approvals, with the schema of the arguments where the tool exists. */
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
    return (await parts.calls.tools(userId, released, id)).getTool(approvals.nameOf(toolCallId))
  }

  /**
   * The stored part. Of rules for a session only hosts are stored: the egress proxy reads them
   * there.
   */
  #userRules({ scope, rules }: Remembered): UserRule[] {
    const { parts, id } = this.#core
    if (scope === 'prompt') return []
    if (scope === 'always') return rules.map((match) => parts.calls.rules.make('allow', match))
    return rules
      .filter(isAboutHost)
      .map((match) => parts.calls.rules.make('allow', match, { endsWith: { sessionId: id } }))
  }

  /** The tool and the choice; of what the call was about only what a rule keeps. */
  #lineOf(toolCallId: string, choice: object, rules: readonly UserRule[]) {
    const tool = this.#core.approvals.nameOf(toolCallId)
    const remembered = rules.length === 0 ? {} : { rules: rules.map(({ match }) => match) }
    return {
      what: 'approval_answered',
      whom: { id: this.#core.id, name: tool },
      after: { ...choice, call: toolCallId, ...remembered },
    } as const
  }

  /** A new rule answers the other questions that it covers. Only inside `inTurn`. */
  async #answerByRules(): Promise<void> {
    const { running, approvals, userId, effectiveMode: mode, parts } = this.#core
    if (running === undefined) return
    const at = { sessionId: this.#core.id, promptId: running.promptId }
    for (const { toolCallId } of approvals.pending()) {
      const judged = running.judged.get(toolCallId)
      if (judged === undefined) continue
      const { verdict } = await rulingOf(judged, { userId, at, approvals, mode, parts: parts.calls })
      if (verdict === 'allow') await this.#store(toolCallId, { allowed: true, by: 'rule' })
    }
  }

  /** See `Session.refuse`. */
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

const ONLY_THIS_CALL =
  'You may allow or deny this call as it is. To change it, or to have an answer remembered, its owner has to let you take part.'

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
