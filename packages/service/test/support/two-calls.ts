import type { Script } from './scripted-agent.ts'

/** Two calls that end in the other order than they were made, then an answer. */
export const twoCalls: Script = async (turn) => {
  await turn.say('I will look.')
  for (const [index, toolCallId] of ['c1', 'c2'].entries()) {
    await turn.settle((meta) => ({
      sessionUpdate: 'tool_call',
      toolCallId,
      title: 'Run',
      name: `tool_${index + 1}`,
      kind: 'execute',
      status: 'pending',
      rawInput: {},
      _meta: meta({ turn: 1 }),
    }))
  }
  await turn.settle((meta) => ({
    sessionUpdate: 'tool_call_update',
    toolCallId: 'c2',
    status: 'failed',
    rawOutput: { forModel: 'no' },
    _meta: meta({ turn: 1, reason: 'denied' }),
  }))
  const outputInfo = {
    bytes: 99,
    lines: 9,
    truncated: true,
    url: `/api/sessions/${turn.sessionId}/outputs/c1`,
  }
  await turn.settle((meta) => ({
    sessionUpdate: 'tool_call_update',
    toolCallId: 'c1',
    status: 'completed',
    rawOutput: { forModel: 'yes' },
    _meta: meta({ turn: 1, outputInfo, exit: { code: 0 } }),
  }))
  await turn.settle((meta) => ({
    sessionUpdate: 'session_info_update',
    _meta: meta({ turn: 1, event: { type: 'turn_ended', callIds: ['c1', 'c2'] } }),
  }))
  await turn.say('Done.')
  return 'completed'
}
