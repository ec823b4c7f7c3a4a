import type { SessionEvent } from '@sandlot/shared/chat/events'
import type { SandlotEvent } from '@sandlot/shared/chat/sandlot-event'
import { type Transcript, emptyTranscript, foldTranscript } from '@sandlot/shared/transcript/transcript'
import { expect, test } from 'vitest'
import { branchNote, entryAsMarkdown } from '@sandlot/shared/transcript/as-markdown'
import { newsBetween } from '../../src/state/news.ts'
import { SessionLog } from '../fixture/session-log.ts'

function markdown({ entries, prompts }: Transcript): string {
  const seen = new Set<string>()
  const nameOf = (author: { name: string } | undefined) => author?.name ?? 'You'
  const parts = entries.flatMap((entry) => [
    ...[branchNote(entry, prompts, seen) ?? []].flat(),
    ...[entryAsMarkdown(entry, nameOf)?.trimEnd() ?? []].flat(),
  ])
  return ['# Primes', ...parts].join('\n\n') + '\n'
}

const markdownOf = (events: readonly SessionEvent[]) =>
  markdown(events.reduce(foldTranscript, emptyTranscript()))

test('a conversation as Markdown: what was said, called and answered; backticks end no block', () => {
  const log = new SessionLog(1)
  log.prompt('Which primes?', 'r_1')
  log.text('agent_thought_chunk', 'Let me see.')
  log.text('agent_message_chunk', 'I look.')
  const call = { toolCallId: 'c', title: 'Look', name: 'run_shell_command', kind: 'execute' as const }
  log.call({ ...call, rawInput: { command: 'cat notes.md', timeout_ms: 5 } })
  log.started('c')
  log.outcome(
    'c',
    { status: 'completed', rawOutput: { forModel: '```\n2 3 5\n```\n' } },
    { exit: { code: 0 } },
  )
  log.cut('timeout', '2, 3 a')
  log.text('agent_message_chunk', '2, 3 and 5.')
  log.end('max_turns', 'Reached the limit of 3 steps.')
  expect(markdownOf(log.settled)).toBe(
    [
      '# Primes',
      '## You',
      'Which primes?',
      '## Sandlot',
      'I look.',
      '**Look** (Exit 0)',
      '```sh\ncat notes.md\n```',
      'timeout_ms: `5`',
      '````\n```\n2 3 5\n```\n````',
      '## Sandlot',
      '2, 3 a',
      '*Cut off here. The model didn’t answer in time.*',
      '## Sandlot',
      '2, 3 and 5.',
      '*Reached the limit of 3 steps.*\n',
    ].join('\n\n'),
  )
})

test('of a shared chat it says who wrote, and has the comments', () => {
  const log = new SessionLog(1)
  const bob = { id: 'u_2', name: 'Bob' }
  log.prompt('And 7?', undefined, bob)
  log.text('agent_message_chunk', 'Also.')
  const comment: SandlotEvent = {
    type: 'comment',
    commentId: 'k',
    text: 'He is right.\n\n# Not a heading',
    mentions: [],
  }
  log.happened(comment, undefined, bob)
  expect(markdownOf(log.settled)).toBe(
    [
      '# Primes',
      '## Bob',
      'And 7?',
      '## Sandlot',
      'Also.',
      '> **Bob** (comment, not read by the agent)\n>\n> He is right.\n>\n> # Not a heading\n',
    ].join('\n\n'),
  )
})

test('news: a chat that waits for more, and one that ended; nothing of a list that was not known', () => {
  const chat = (sessionId: string, waiting: number, running: boolean) => ({
    sessionId,
    title: sessionId,
    updatedAt: 1,
    mode: 'manual' as const,
    waiting,
    running,
  })
  const ofAnother = (running: boolean) => ({ ...chat('e', 0, running), owner: { id: 'u_2', name: 'Bob' } })
  const before = [
    chat('a', 0, true),
    chat('b', 1, true),
    chat('c', 0, true),
    chat('d', 0, false),
    ofAnother(true),
  ]
  const after = [
    chat('a', 1, true),
    chat('b', 1, true),
    chat('c', 0, false),
    chat('d', 0, false),
    ofAnother(false),
  ]
  expect(newsBetween(before, after).map(({ sessionId, what }) => `${sessionId} ${what}`)).toEqual([
    'a waiting',
    'c done',
  ])
  expect(newsBetween(null, after)).toEqual([])
  expect(newsBetween(before, [...before, chat('f', 0, true)])).toEqual([])
  expect(newsBetween(before, [...before, chat('f', 1, true)])).toMatchObject([
    { sessionId: 'f', what: 'waiting' },
  ])
})

test('a second branch begins with a note', () => {
  const log = new SessionLog(1)
  log.prompt('One?')
  log.text('agent_message_chunk', 'One.')
  log.end('completed')
  log.prompt('Two?', undefined, undefined, null)
  log.end('completed')
  log.prompt('Three?')
  log.end('completed')
  const text = markdownOf(log.settled)
  expect(text.match(/continues from an earlier/g)).toHaveLength(1)
  expect(text.indexOf('continues from an earlier')).toBeGreaterThan(text.indexOf('One.'))
  expect(text.indexOf('continues from an earlier')).toBeLessThan(text.indexOf('Two?'))
})
