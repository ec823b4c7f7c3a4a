/** Words of a conversation: activity, ends, notes, answers that were cut off, queued messages. */
import type { Entry, EndEntry, MessageEntry, QueuedEntry } from '@sandlot/shared/transcript/entries'
import type { Transcript } from '@sandlot/shared/transcript/transcript'
import type { Author } from '@sandlot/shared/chat/shares'
import { createElement } from 'react'
import { expect, test } from 'vitest'
import { ToolCard } from '../../src/chat/calls/tool-card.tsx'
import { WaitingForApprovers } from '../../src/chat/sharing/waiting-for-approvers.tsx'
import { type Reading, ReadingProvider } from '../../src/state/reading.ts'
import { Queued } from '../../src/chat/composer/queued.tsx'
import { ActivityLine } from '../../src/chat/transcript/activity-line.tsx'
import { AssistantMessage, NoteRow } from '../../src/chat/transcript/message-rows.tsx'
import { hasWords, PromptEnd } from '../../src/chat/transcript/prompt-end.tsx'
import {
  buildRuns,
  gaveUp,
  hasNotes,
  readsResults,
  startsSandbox,
  triesAgain,
  wrongKey,
} from '../fixture/stories.ts'
import { transcriptOf, wordsOf } from '../support/rendered.ts'

const ofType = <T extends Entry['type']>({ entries }: Transcript, type: T) =>
  entries.filter((entry): entry is Extract<Entry, { type: T }> => entry.type === type)

const activity = (transcript: Transcript) =>
  wordsOf(createElement(ActivityLine, { transcript, sending: false, stopping: false }))
const message = (entry: MessageEntry) =>
  wordsOf(createElement(AssistantMessage, { entry, sessionId: 's', last: true, newest: true }))
const end = (entry: EndEntry) => wordsOf(createElement(PromptEnd, { entry, onRetry: null }))
const cutOff = (transcript: Transcript) =>
  ofType(transcript, 'message')
    .filter(({ cut }) => cut !== undefined)
    .map(message)

test('a reader who may not answer reads everybody who may, and nothing of that in a snapshot', () => {
  const [ada, linus, tim] = ['Ada', 'Linus', 'Tim'].map((name) => ({ id: name, name })) as [
    Author,
    Author,
    Author,
  ]
  const waiting = (approvers: readonly Author[], snapshot?: true, moreApprovers = 0) => {
    const reading: Reading = {
      owner: ada,
      access: 'watch',
      mayApprove: false,
      approvers,
      moreApprovers,
      modeCeiling: null,
      together: true,
      people: [],
      ...(snapshot && { snapshot }),
    }
    const element = createElement(WaitingForApprovers)
    return wordsOf(createElement(ReadingProvider, { value: reading, children: element }))
  }
  expect(waiting([])).toBe('A Waiting for Ada')
  expect(waiting([linus])).toBe('A Waiting for Ada or Linus')
  expect(waiting([linus, tim])).toBe('A Waiting for Ada, Linus or Tim')
  expect(waiting([linus, tim, linus, tim])).toBe('A Waiting for Ada, Linus, Tim or 2 others')
  expect(waiting([linus, tim, linus], undefined, 4)).toBe('A Waiting for Ada, Linus, Tim or 5 others')
  expect(waiting([linus], true)).toBe('A Not answered when this snapshot was made')
})

test('an error has a title by its cause, and an id to report', () => {
  expect(ofType(transcriptOf(wrongKey()), 'end').map(end)).toEqual([
    expect.stringMatching(
      /^The provider refused the key .*refused the API key \(401\).* Replace its key\. Settings → Models Request id req_011CTq8mK2vYbN4sDfGhJkLp$/,
    ),
  ])
  const transcript = transcriptOf(gaveUp())
  expect(ofType(transcript, 'end').map(end)).toEqual([
    expect.stringMatching(/^The connection to the model was lost .* Prompt id p_1$/),
  ])
  expect(cutOff(transcript)).toEqual([expect.stringContaining('once for each row,')])
})

test('an answer that broke off stays, marked as cut off, and the retry is counted down', () => {
  const log = triesAgain()
  expect(cutOff(transcriptOf(log))).toEqual([
    expect.stringMatching(
      /sent in full size.*once for each row, Cut off here\. The connection to the model was lost\.$/,
    ),
    expect.stringMatching(/The provider is limiting requests\.$/),
  ])
  expect(activity(transcriptOf(log))).toMatch(/The provider is limiting requests; retrying in \d+ s, 2 of 3$/)
  log.waits('rate_limit', 0, 3)
  expect(activity(transcriptOf(log))).toMatch(/limiting requests; retrying, 3 of 3$/)
  log.liveText('m_9', 0, 'Three things: ')
  expect(activity(transcriptOf(log))).toBe('')
  log.live = []
  log.text('agent_message_chunk', 'Three things: all of them.', 'm_9')
  const transcript = transcriptOf(log)
  expect(cutOff(transcript)).toHaveLength(2)
  expect(ofType(transcript, 'message').map(message).at(-1)).toContain('Three things: all of them.')
})

test('a starting sandbox shows on the activity line and on the card', () => {
  const transcript = transcriptOf(startsSandbox())
  expect(activity(transcript)).toMatch(/^Starting the sandbox…/)
  expect(
    ofType(transcript, 'call').map((call) => wordsOf(createElement(ToolCard, { call, sessionId: 's' }))),
  ).toEqual([expect.stringContaining('Getting ready')])
})

test('the activity line says when results are being read', () => {
  expect(activity(transcriptOf(readsResults()))).toBe('Reading results…')
})

test('notes are one line each; calls that failed for one reason are summed up', () => {
  const transcript = transcriptOf(hasNotes())
  expect(ofType(transcript, 'note').map((entry) => wordsOf(createElement(NoteRow, { entry })))).toEqual([
    'Earlier messages were summarised to free up context',
    'Answered by fallback-large because the previous model was overloaded',
  ])
  expect(ofType(transcript, 'end').filter(hasWords).map(end)).toEqual([
    'The last 2 calls failed for the same reason: a file or folder that is not there.',
  ])
})

test('a queued message says when it is sent', () => {
  const log = buildRuns()
  const queued = (): string => {
    const transcript = transcriptOf(log)
    const messages: readonly QueuedEntry[] = transcript.queued
    return wordsOf(
      createElement(Queued, {
        messages,
        asked: [],
        running: transcript.prompt !== null,
        onTakeBack: () => undefined,
      }),
    )
  }
  log.happened({ type: 'message_queued', messageId: 'm_1', text: 'And in green.', as: 'steer' })
  expect(queued()).toBe('Next And in green.')
  log.end('cancelled')
  expect(queued()).toBe('Will be sent with your next message And in green.')
})
