import { expect, test } from 'vitest'
import { noteWords } from '../../src/transcript/cause-words.ts'

test('notes say what happened, and why where that is known', () => {
  expect(noteWords({ type: 'compacted', summary: 'x', upTo: 1 })).toMatch(/^Earlier messages were summarised/)
  expect(noteWords({ type: 'compacted', summary: '', upTo: 0 })).toMatch(/^Older results were dropped/)
  for (const why of ['overloaded', 'rate_limit', 'quota'])
    expect(noteWords({ type: 'model_changed', model: 'm-2', why })).toMatch(/^Answered by m-2 because [^_]*$/)
  for (const why of [{}, { why: 'toString' }])
    expect(noteWords({ type: 'model_changed', model: 'm-2', ...why })).toBe('Answered by m-2 from here on')
  const learnt = { type: 'window_learnt', model: 'm-2', tokens: 4_096 } as const
  // Members see no names of variables and options.
  expect(noteWords({ ...learnt, why: 'counted' })).toMatch(
    /^m-2 has room for only 4,096 tokens and cut off the beginning [a-z ]+; ask [a-z ]+$/,
  )
  expect(noteWords({ ...learnt, why: 'refused' })).toMatch(
    /^m-2 has room for only 4,096 tokens; ask [a-z ]+$/,
  )
})
