/** Row "failure pattern": two or more calls in a row that fail with one cause. */
import { expect, test } from 'vitest'
import type { ExitInfo } from '../../src/chat/call.ts'
import type { FailureReason } from '../../src/chat/reasons.ts'
import type { SessionEvent } from '../../src/chat/events.ts'
import { makeMeta } from '../../src/chat/event-meta.ts'
import { failurePattern } from '../../src/transcript/failure-pattern.ts'

interface Call {
  reason?: FailureReason
  exit?: ExitInfo
  text?: string
  open?: true
}

function logOf(calls: readonly Call[]): SessionEvent[] {
  return calls.flatMap(({ reason, exit, text = '', open }, at): SessionEvent[] => {
    const toolCallId = `c${at}`
    const announced: SessionEvent = {
      sessionUpdate: 'tool_call',
      toolCallId,
      title: 'x',
      name: 'x',
      kind: 'other',
      status: 'pending',
      rawInput: {},
      _meta: makeMeta({ promptId: 'p' }, 1),
    }
    const fields = {
      promptId: 'p',
      reason,
      exit,
    }
    const status = reason === undefined ? 'completed' : 'failed'
    const rawOutput = { forModel: text }
    const outcome: SessionEvent = {
      sessionUpdate: 'tool_call_update',
      toolCallId,
      status,
      rawOutput,
      _meta: makeMeta(fields, 1),
    }
    return open === true ? [announced] : [announced, outcome]
  })
}
const missing: Call = { reason: 'tool_error', text: 'There is no file /workspace/a.' }
const shell: Call = { exit: { code: 1 }, text: 'cat: b: No such file or directory' }

test.each<[string, Call[], ReturnType<typeof failurePattern>]>([
  ['one failure is no pattern', [missing], undefined],
  [
    'two of one cause, whether a tool or a command says it',
    [missing, shell],
    { cause: 'missing_file', callIds: ['c0', 'c1'] },
  ],
  [
    'only those at the end',
    [{ reason: 'denied' }, missing, { reason: 'denied' }, { reason: 'denied' }],
    { cause: 'denied', callIds: ['c2', 'c3'] },
  ],
  ['a success ends it', [missing, missing, {}], undefined],
  ['different causes are none', [missing, { reason: 'timeout' }], undefined],
  [
    'a command that finds nothing and succeeds is no failure',
    [missing, { exit: { code: 0 }, text: 'No such file or directory' }],
    undefined,
  ],
  [
    'what still runs is left out',
    [{ reason: 'timeout' }, { reason: 'timeout' }, { open: true }],
    { cause: 'timeout', callIds: ['c0', 'c1'] },
  ],
  [
    'sign-ins',
    [{ reason: 'needs_auth' }, { exit: { code: 128 }, text: 'fatal: Authentication failed' }],
    { cause: 'auth', callIds: ['c0', 'c1'] },
  ],
])('failure pattern: %s', (_, calls, pattern) => {
  expect(failurePattern(logOf(calls), 'p')).toEqual(pattern)
  expect(failurePattern(logOf(calls), 'another')).toBeUndefined()
})
