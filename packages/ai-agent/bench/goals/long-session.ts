/** A6: a session with 10,000 events: how long its history takes to read, and what it adds to a prompt. */
import { type SessionEvent, makeSandlotEvent } from '@sandlot/shared/chat/events'
import { makeMeta } from '@sandlot/shared/chat/event-meta'
import { inTurns, nowMs, p50, p99 } from '../../../../test/bench/measure.ts'
import { type Result, atMost, below } from '../../../../test/bench/report.ts'
import { modelMessages } from '../../src/history/model-messages.ts'
import { nextStep } from '../../src/history/read-log.ts'
import type { Session } from '../../src/session/session.ts'
import type { BenchContext } from '../context.ts'

const EVENTS = 10_000
const TURNS = 40

export async function longSession({ ours, player, samples }: BenchContext): Promise<Result[]> {
  const log = history()
  const few = Math.max(5, Math.ceil(samples / 20))
  const last = `p_${Math.ceil(EVENTS / (TURNS * 5 + 3)) - 1}`
  const folds = await inTurns(
    [
      { name: 'the model’s messages', once: async () => void modelMessages(log, 'system') },
      { name: 'the next step of its last prompt', once: async () => void nextStep(log, last, 100) },
    ],
    few * 3,
    3,
  )

  const long = await ours.sessionOf('call', log)
  const short = await ours.newSession('call', 'echo')
  const added = async (session: Session): Promise<number> => {
    await player.marks(ours.whose)
    let startedAt = Number.NaN
    let endedAt = Number.NaN
    ours.saying((text) => {
      startedAt = nowMs()
      endedAt = nowMs()
      return text
    })
    await ours.prompt(session)
    const [first, second] = await player.marks(ours.whose)
    if (first === undefined || second === undefined) throw new Error('there were not two requests')
    return startedAt - first.lastAt + (second.askedAt - endedAt)
  }
  const [inLong, inShort] = await inTurns(
    [
      { name: `Sandlot, in a session of ${EVENTS} events`, once: () => added(long) },
      { name: 'Sandlot, in a new session', once: () => added(short) },
    ],
    few * 2,
    3,
  )
  return [
    {
      goal: 'A6',
      title: `one reading of a history of ${EVENTS} events`,
      series: folds,
      verdicts: folds.map((one) => below(`${one.name}: p50 ≤ 20 ms`, p50(one), 20, 'ms')),
    },
    {
      goal: 'A6',
      title: 'last byte to tool, and outcome to next request, together',
      series: [inLong, inShort],
      verdicts: [
        below('long session: p99 < 200 ms', p99(inLong), 200, 'ms'),
        atMost('p50 ≤ 10 times that of a new session', p50(inLong), p50(inShort), 10),
      ],
    },
  ]
}

/** Prompts of 40 turns with a call in each, as the loop writes them. */
export function history(): SessionEvent[] {
  const log: SessionEvent[] = []
  for (let prompt = 0; log.length < EVENTS; prompt++) {
    const promptId = `p_${prompt}`
    const at = prompt
    log.push(makeSandlotEvent({ type: 'prompt_started' }, { promptId }, at))
    log.push({
      sessionUpdate: 'user_message_chunk',
      messageId: `m_${prompt}`,
      content: say(`task ${prompt}`),
      _meta: makeMeta({ promptId }, at),
    })
    for (let turn = 1; turn <= TURNS; turn++) log.push(...turnEvents(promptId, turn, at))
    log.push({
      sessionUpdate: 'agent_message_chunk',
      messageId: `m_${prompt}_end`,
      content: say('Done.'),
      _meta: makeMeta({ promptId, turn: TURNS + 1 }, at),
    })
    log.push(
      makeSandlotEvent(
        { type: 'prompt_ended', stopReason: 'end_turn', reason: 'completed' },
        { promptId },
        at,
      ),
    )
  }
  return log
}

function turnEvents(promptId: string, turn: number, at: number): SessionEvent[] {
  const toolCallId = `c_${promptId}_${turn}`
  const meta = (): { _meta: ReturnType<typeof makeMeta> } => ({ _meta: makeMeta({ promptId, turn }, at) })
  return [
    {
      sessionUpdate: 'agent_message_chunk',
      messageId: `m_${promptId}_${turn}`,
      content: say(`Step ${turn}.`),
      ...meta(),
    },
    {
      sessionUpdate: 'tool_call',
      toolCallId,
      title: 'Echo',
      name: 'echo',
      kind: 'other',
      status: 'pending',
      rawInput: { text: `${promptId} ${turn}` },
      ...meta(),
    },
    { sessionUpdate: 'tool_call_update', toolCallId, status: 'in_progress', ...meta() },
    {
      sessionUpdate: 'tool_call_update',
      toolCallId,
      status: 'completed',
      rawOutput: { forModel: `${promptId} ${turn} `.repeat(10) },
      ...meta(),
    },
    makeSandlotEvent({ type: 'turn_ended', callIds: [toolCallId] }, { promptId, turn }, at),
  ]
}

function say(text: string): { type: 'text'; text: string } {
  return { type: 'text', text }
}
