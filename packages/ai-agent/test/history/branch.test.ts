/** Branches of one log: random trees of prompts, and what the model reads of each. */
import { makeMeta } from '@sandlot/shared/chat/event-meta'
import { type SessionEvent, makeSandlotEvent, metaOf } from '@sandlot/shared/chat/events'
import { branchTo, shownBranch } from '@sandlot/shared/transcript/branches'
import { branchShown, emptyTranscript, foldTranscript, promptOf } from '@sandlot/shared/transcript/transcript'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { branchOf, branchWith, promptsOf } from '../../src/history/branch.ts'
import { historyProblems } from '../../src/history/check.ts'
import { modelMessages } from '../../src/history/model-messages.ts'

/** One prompt of a random session: which of those before it it follows, and what happens in it. */
interface Drawn {
  /**
   * Position among `n` prompts before it, by `follows % (n + 1)`; `n`: none. Absent: it names none.
   */
  follows: number | undefined
  calls: number
  answers: boolean
  compacts: boolean
  asked: boolean
}

const drawn: fc.Arbitrary<Drawn[]> = fc.array(
  fc.record({
    follows: fc.option(fc.nat(20), { nil: undefined }),
    calls: fc.nat(2),
    answers: fc.boolean(),
    compacts: fc.boolean(),
    asked: fc.boolean(),
  }),
  { minLength: 1, maxLength: 9 },
)

function logOf(prompts: readonly Drawn[]): SessionEvent[] {
  const log: SessionEvent[] = []
  const add = (event: SessionEvent): void => {
    const seq = log.length + 1
    log.push({ ...event, _meta: { ...event._meta, sandlot: { ...metaOf(event), seq } } })
  }
  for (const [at, { follows, calls, answers, compacts, asked }] of prompts.entries()) {
    const promptId = `p_${at}`
    const meta = (turn?: number) => makeMeta({ promptId, turn }, at)
    const named = follows === undefined ? undefined : follows % (at + 1)
    const place = named === undefined ? {} : { follows: named === at ? null : `p_${named}` }
    add(makeSandlotEvent({ type: 'prompt_started', ...place }, { promptId }, at))
    add({
      sessionUpdate: 'user_message_chunk',
      messageId: `m_${at}`,
      content: { type: 'text', text: `question ${at}` },
      _meta: meta(),
    })
    if (compacts && at > 0) {
      // All before this prompt, as a cut before its message makes it.
      const upTo = log.length - 2
      add(makeSandlotEvent({ type: 'compacted', summary: `summary ${at}`, upTo }, { promptId, turn: 1 }, at))
    }
    for (let n = 0; n < calls; n++) {
      const toolCallId = `c_${at}_${n}`
      add({
        sessionUpdate: 'tool_call',
        toolCallId,
        name: 'echo',
        title: 'echo',
        kind: 'other',
        status: 'pending',
        rawInput: { n },
        _meta: meta(1),
      })
    }
    for (let n = 0; n < calls; n++)
      add({
        sessionUpdate: 'tool_call_update',
        toolCallId: `c_${at}_${n}`,
        status: 'completed',
        rawOutput: { forModel: `result ${at} ${n}` },
        _meta: meta(1),
      })
    if (asked) add({ sessionUpdate: 'current_mode_update', currentModeId: 'yolo', _meta: makeMeta({}, at) })
    if (answers)
      add({
        sessionUpdate: 'agent_message_chunk',
        messageId: `m_a${at}`,
        content: { type: 'text', text: `answer ${at}` },
        _meta: meta(2),
      })
    const end = { type: 'prompt_ended', reason: 'completed', stopReason: 'end_turn' } as const
    add(makeSandlotEvent({ ...end, ...(answers ? {} : { text: 'No answer.' }) }, { promptId }, at))
  }
  return log
}

/** The same prompts as a session that never branched. Numbers stay, so that summaries still hold. */
function linear(log: readonly SessionEvent[], promptId: string): SessionEvent[] {
  const path = new Set(branchTo(promptsOf(log), promptId))
  return log
    .filter((event) => path.has(metaOf(event).promptId ?? promptId))
    .map((event) => {
      const { sandlot } = event._meta
      if (sandlot.event?.type !== 'prompt_started') return event
      const { follows: _none, ...begun } = sandlot.event
      return { ...event, _meta: { sandlot: { ...sandlot, event: begun } } }
    })
}

describe('branches', () => {
  test('a log whose prompts name nothing is one branch: the log itself', () => {
    fc.assert(
      fc.property(drawn, (prompts) => {
        const log = logOf(prompts.map((prompt) => ({ ...prompt, follows: undefined })))
        expect(branchOf(log)).toBe(log)
      }),
    )
  })

  test('the model reads of a branch what it would read of a session with that branch alone', () => {
    fc.assert(
      fc.property(drawn, (prompts) => {
        const log = logOf(prompts)
        for (const { id } of promptsOf(log)) {
          const branch = branchWith(log, id)
          const messages = modelMessages(branch, 'system')
          expect(messages).toEqual(modelMessages(linear(log, id), 'system'))
          const problems = historyProblems([...messages, { role: 'user', content: 'next' }])
          expect(problems).toEqual([])
        }
      }),
    )
  })

  test('a log that grows has at each event the branch that it would have read anew', () => {
    fc.assert(
      fc.property(drawn, (prompts) => {
        const grown: SessionEvent[] = []
        for (const event of logOf(prompts)) {
          grown.push(event)
          expect(branchOf(grown)).toEqual(branchOf([...grown]))
          const newest = promptsOf(grown).at(-1)
          if (newest !== undefined) expect(branchOf(grown)).toEqual(branchWith(grown, newest.id))
        }
      }),
    )
  })

  test('a screen shows at each event of the log one branch, whole, and every branch can be chosen', () => {
    fc.assert(
      fc.property(drawn, (prompts) => {
        let transcript = emptyTranscript()
        for (const event of logOf(prompts)) {
          transcript = foldTranscript(transcript, event)
          const shown = (chosen: string | null) =>
            new Set(
              branchShown(transcript, shownBranch(transcript.prompts, chosen)).entries.map((entry) =>
                promptOf(entry),
              ),
            )
          const newest = transcript.prompts.at(-1)
          if (newest === undefined) continue
          for (const { id } of transcript.prompts) {
            expect(shown(id).has(id) || transcript.entries.every((entry) => promptOf(entry) !== id)).toBe(
              true,
            )
            expect(transcript.prompts.every((one) => one.id !== one.follows)).toBe(true)
          }
          const path = branchTo(transcript.prompts, newest.id)
          expect([...shown(null)].every((id) => path.includes(id ?? ''))).toBe(true)
        }
      }),
    )
  })
})
