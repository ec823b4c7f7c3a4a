/** Row "error policy": which failures end a prompt. */
import { makeMeta } from '@sandlot/shared/chat/event-meta'
import { type SessionEvent, makeSandlotEvent } from '@sandlot/shared/chat/events'
import type { FailureReason } from '@sandlot/shared/chat/reasons'
import { expect, test } from 'vitest'
import { endingFailure } from '../../src/limits/error-policy.ts'

const started = (onError?: 'stop' | 'continue'): SessionEvent =>
  makeSandlotEvent({ type: 'prompt_started', onError }, { promptId: 'p' }, 1)
const failed = (reason: FailureReason, fatal: boolean): SessionEvent => ({
  sessionUpdate: 'tool_call_update',
  toolCallId: 'c',
  status: 'failed',
  rawOutput: { forModel: 'No.' },
  _meta: makeMeta({ promptId: 'p', turn: 1, reason, ...(fatal ? { fatal: true } : {}) }, 1),
})

test.each([
  ['stop', 'tool_error', false, true],
  ['stop', 'denied', false, true],
  // Its user stopped that one call, not the prompt.
  ['stop', 'cancelled', false, false],
  ['continue', 'tool_error', false, false],
  [undefined, 'tool_error', false, false],
  ['continue', 'tool_error', true, true],
  ['continue', 'cancelled', true, false],
] as const)(
  'on error %s, a call that ends %s, fatal: %s; ends the prompt: %s',
  (onError, reason, fatal, ends) => {
    expect(endingFailure([started(onError), failed(reason, fatal)], 'p') !== undefined).toBe(ends)
  },
)
