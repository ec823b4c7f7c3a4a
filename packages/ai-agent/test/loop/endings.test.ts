import { metaOf, type SessionEvent } from '@sandlot/shared/chat/events'
import { makeMeta } from '@sandlot/shared/chat/event-meta'
import { expect, test } from 'vitest'
import { missingOutcomes } from '../../src/loop/endings.ts'

const at = { promptId: 'p', turn: 1 }
const announced = (toolCallId: string): SessionEvent => ({
  sessionUpdate: 'tool_call',
  toolCallId,
  title: toolCallId,
  name: 'run',
  kind: 'execute',
  status: 'pending',
  rawInput: {},
  _meta: makeMeta(at, 0),
})
const began: SessionEvent = {
  sessionUpdate: 'tool_call_update',
  toolCallId: 'began',
  status: 'in_progress',
  _meta: makeMeta(at, 0),
}

test.each(['cancelled', 'interrupted', 'tool_error'] as const)(
  'a call that never began was not started, for whatever reason it is given up: %s',
  (reason) => {
    const log = [announced('began'), began, announced('waited')]
    const [first, second] = missingOutcomes(log, 'p', reason, 0).map((event) => ({
      reason: metaOf(event).reason,
      text: 'rawOutput' in event ? event.rawOutput?.forModel : undefined,
    }))
    expect(first?.reason).toBe(reason)
    expect(first?.text).not.toContain('not started')
    expect(second?.reason).toBe(reason === 'tool_error' ? 'interrupted' : reason)
    expect(second?.text).toMatch(/was not started.*no effect/)
  },
)
