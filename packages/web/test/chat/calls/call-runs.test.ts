import { emptyTranscript, foldTranscript } from '@sandlot/shared/transcript/transcript'
import { expect, test } from 'vitest'
import { runWords, withRuns } from '../../../src/chat/calls/call-runs.ts'
import { SessionLog } from '../../fixture/session-log.ts'

type Kind = 'execute' | 'read' | 'think'

function rowsAfter(
  make: (log: SessionLog, ran: (id: string, kind?: Kind, code?: number) => void) => void,
): string[] {
  const log = new SessionLog()
  log.prompt('go')
  make(log, (id, kind = 'execute', code = 0) => {
    log.call({ toolCallId: id, title: id, name: id, kind, rawInput: {} })
    log.started(id)
    log.outcome(
      id,
      { status: 'completed', rawOutput: { forModel: '' } },
      { ...(kind === 'execute' ? { exit: { code } } : {}), timing: { waitMs: 0, runMs: 400 } },
    )
  })
  return withRuns(log.settled.reduce(foldTranscript, emptyTranscript()).entries)
    .slice(1)
    .map((row) => (row.type === 'run' ? runWords(row) : row.id))
}

test('three and more like successes are one row, which says how many and how long', () => {
  expect(rowsAfter((_, ran) => ['a', 'b'].forEach((id) => ran(id)))).toEqual(['a', 'b'])
  expect(rowsAfter((_, ran) => ['a', 'b', 'c'].forEach((id) => ran(id)))).toEqual(['3 commands, 1.2 s'])
})

test('words, another kind and what did not go well end a run', () => {
  const rows = rowsAfter((log, ran) => {
    for (const id of ['a', 'b', 'c']) ran(id)
    for (const id of ['d', 'e', 'f', 'g']) ran(id, 'read')
    log.text('agent_message_chunk', 'Now the last.', 'm')
    for (const id of ['h', 'i', 'j']) ran(id)
    ran('k', 'execute', 1)
    ran('l')
  })
  expect(rows).toEqual(['3 commands, 1.2 s', '4 reads, 1.6 s', 'm', '3 commands, 1.2 s', 'k', 'l'])
})

test('a step of the plan has no card and ends no run', () => {
  const rows = rowsAfter((_, ran) => {
    ran('a')
    ran('plan', 'think')
    ran('b')
    ran('c')
  })
  expect(rows).toEqual(['3 commands, 1.2 s'])
})
