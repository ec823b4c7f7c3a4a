/**
 * Answers to the approvals of one session: by a person, by nobody in time, by a Stop. The first
 * stored one wins.
 */
import { SandlotError, messageOf } from '@sandlot/shared/errors'
import { makeSandlotEvent, metaOf } from '@sandlot/shared/events'
import type { UserRule } from '@sandlot/storage/sessions/rules'
import {
  ANSWER_OPTION,
  type Question,
  type QuestionContent,
  problemsOfAnswer,
} from '@sandlot/shared/question'
import { type Remembered, isAboutHost } from '@sandlot/shared/rules'
import { rulingOf } from './batch.ts'
import type { SessionCore } from './core.ts'
import type { ApprovalAnswer } from '../tools/tool.ts'

export interface AnswerOptions {
  /** For the model. */
  reason?: string | undefined
  /** What was filled in, of a question. */
  content?: QuestionContent | undefined
  /** False: an answer that makes a rule for later sessions is refused. */
  mayMakeRules?: boolean
}

export class Answers {
  readonly #core: SessionCore

  constructor(core: SessionCore) {
    this.#core = core
  }

  /** As `Session.answer`. */
  answer(
    toolCallId: string,
    optionId: string,
    { reason, content, mayMakeRules = true }: AnswerOptions = {},
  ): Promise<{ answered: boolean; by?: string }> {
    const { approvals, parts, id } = this.#core
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
          'An API key makes no rules. Choose an answer that remembers nothing.',
        )
      const allowed = option.kind === 'allow_once' || option.kind === 'allow_always'
      const said = {
        reason,
        ...(allowed ? filledIn(asked.question, optionId, content) : {}),
      }
      const { remembers } = option
      try {
        const rules = allowed && remembers !== undefined ? this.#kept(remembers) : []
        await this.#store(toolCallId, { allowed, optionId, by: 'user', ...said }, rules)
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
   * What the store keeps of it. Of what holds for a session only hosts: the way out of the sandbox
   * reads them there.
   */
  #kept({ scope, rules }: Remembered): UserRule[] {
    const { parts, id } = this.#core
    if (scope === 'always') return rules.map((match) => parts.rules.make('allow', match))
    return rules
      .filter(isAboutHost)
      .map((match) => parts.rules.make('allow', match, { endsWith: { sessionId: id } }))
  }

  /** What was just remembered answers the other questions that it covers. Only inside `inTurn`. */
  async #answerByRules(): Promise<void> {
    const { running, approvals, userId, effectiveMode: mode, parts } = this.#core
    if (running === undefined) return
    const at = { sessionId: this.#core.id, promptId: running.promptId }
    for (const { toolCallId } of approvals.pending()) {
      const judged = running.judged.get(toolCallId)
      if (judged === undefined) continue
      const { verdict } = await rulingOf(judged, { userId, at, approvals, mode, rules: parts.rules })
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
  async denyWhatNobodyAnswers(): Promise<void> {
    const { running, approvals } = this.#core
    const stopping = running?.stop.signal.aborted === true
    if (!stopping && running?.unattended !== true) return
    for (const { toolCallId } of approvals.pending()) {
      await this.#store(toolCallId, { allowed: false, by: stopping ? 'cancel' : 'unattended' })
    }
  }

  /** Nobody has answered in time. Never rejects. */
  async expire(toolCallId: string): Promise<void> {
    try {
      await this.refuse(toolCallId, 'expiry')
    } catch (error) {
      const fields = { sessionId: this.#core.id, toolCallId, error: messageOf(error) }
      this.#core.parts.log.warn(fields, 'an approval could not expire')
    }
  }

  /** `rules` are kept in the same transaction. */
  async #store(toolCallId: string, answer: ApprovalAnswer, rules: readonly UserRule[] = []): Promise<void> {
    const call = this.#core.log.find(
      (event) => event.sessionUpdate === 'tool_call' && event.toolCallId === toolCallId,
    )
    const { promptId, turn } = call === undefined ? {} : metaOf(call)
    const fields = {
      promptId,
      turn,
    }
    const event = { type: 'approval_answered', toolCallId, ...answer } as const
    const more = rules.length === 0 ? {} : { rules }
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
