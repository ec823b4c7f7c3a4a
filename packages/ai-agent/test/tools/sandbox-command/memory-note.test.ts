import type { CommandExit } from '@sandlot/sandbox/sandbox'
import { expect, test } from 'vitest'
import { endWords } from '../../../src/tools/background/job-state.ts'
import { memoryNote } from '../../../src/tools/sandbox-reasons.ts'

const exit = (more: Partial<CommandExit>): CommandExit => ({
  cause: 'exited',
  code: 0,
  bytes: { stdout: 0, stderr: 0 },
  sha256: { stdout: '', stderr: '' },
  userMs: 0,
  systemMs: 0,
  maxRssKb: 0,
  durationMs: 0,
  ...more,
})

test.each([0, 1, 137])('a kill for want of memory is a note on a result with code %i', (code) => {
  const note =
    'The sandbox ran out of memory while this ran, and a process in it was killed. If that was a part of this command, its result is incomplete.'
  expect(memoryNote(exit({ code, oomKills: 1 }))).toBe(note)
  expect(memoryNote(exit({ code, oomKills: 3 }))).toContain('3 processes in it were killed')
  expect(endWords({ state: 'ended', exit: exit({ code, oomKills: 1 }) })).toMatch(
    /^ended with exit code \d+ \(the sandbox ran out of memory while it ran/,
  )
})

test('there is none without a kill, nor where it is the reason of the end', () => {
  expect(memoryNote(exit({}))).toBeUndefined()
  expect(memoryNote(exit({ cause: 'oom', oomKills: 1 }))).toBeUndefined()
})
