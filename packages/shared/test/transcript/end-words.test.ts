import { expect, test } from 'vitest'
import type { EndEntry } from '../../src/transcript/entries.ts'
import { endAdvice } from '../../src/transcript/end-words.ts'

const end = (about: Pick<EndEntry, 'cause' | 'setIn'>) => about as EndEntry

test('an administrator reads where the wrong setting is, a member only whom to ask', () => {
  const ask = 'Ask your administrator to check the model’s settings.'
  for (const cause of ['auth', 'unreachable', 'protocol', 'invalid_request'] as const) {
    expect(endAdvice(end({ cause, setIn: 'page' }), true)).not.toMatch(/[A-Z]+_[A-Z]+|file/)
    expect(endAdvice(end({ cause, setIn: 'configuration' }), true)).toMatch(
      cause === 'auth' ? 'OPENAI_API_KEY' : 'OPENAI_BASE_URL',
    )
    for (const setIn of ['page', 'configuration'] as const)
      expect(endAdvice(end({ cause, setIn }), false)).toBe(ask)
  }
  expect(endAdvice(end({ cause: 'malformed_tool_call' }), true)).toContain('tool calling')
  expect(endAdvice(end({ cause: 'malformed_tool_call' }), false)).toBe(ask)
})

test('an error without a wrong setting has no advice', () => {
  expect(endAdvice(end({ cause: 'overloaded' }), true)).toBeUndefined()
  expect(endAdvice(end({ cause: 'auth' }), true)).toBeUndefined()
})
