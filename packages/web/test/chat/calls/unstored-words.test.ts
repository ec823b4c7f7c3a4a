import { expect, test } from 'vitest'
import { unstoredWords } from '../../../src/chat/calls/unstored-words.ts'

test('says how much of an output is stored, and why no more', () => {
  expect(unstoredWords({ from: 0, why: 'budget' })).toBe(
    'None of it was stored: your chat storage is full. Delete chats to free up space.',
  )
  expect(unstoredWords({ from: 1_400, why: 'disk' })).toBe(
    'Only the first 1.4 KiB were stored: the server’s disk is nearly full.',
  )
  expect(unstoredWords({ from: 5_000_000, why: 'limit' })).toBe(
    'Only the first 4.8 MiB were stored: the limit for one output.',
  )
})
