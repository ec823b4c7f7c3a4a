import { formatBytes } from '@sandlot/shared/base/format-bytes'
import { NOTHING_SPENT } from '@sandlot/shared/transcript/spent'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type FailureReason, failureReason } from '@sandlot/shared/chat/reasons'
import type { FailurePattern } from '@sandlot/shared/transcript/failure-pattern'
import { emptyTranscript, foldTranscript } from '@sandlot/shared/transcript/transcript'
import type { CallEntry, EndEntry } from '@sandlot/shared/transcript/entries'
import { describe, expect, test } from 'vitest'
import {
  answerWords,
  failureSentence,
  opensItself,
  phaseOf,
  statusWord,
} from '@sandlot/shared/transcript/call-words'
import { endLines, failuresSentence } from '@sandlot/shared/transcript/end-words'
import { draftSubject, draftTail } from '../../src/chat/calls/draft-words.ts'
import { shownArguments } from '@sandlot/shared/transcript/call-arguments'
import { ageGroup, formatDuration } from '../../src/lib/format.ts'
import { revealInvisible } from '../../src/lib/invisible.ts'
import { type OwnKeys, shortcutOf } from '../../src/lib/shortcuts.ts'
import { reconnectMs } from '../../src/net/backoff.ts'
import { SessionLog } from '../fixture/session-log.ts'

function callAfter(make: (log: SessionLog) => void): CallEntry {
  const log = new SessionLog()
  log.prompt('go')
  log.call({
    toolCallId: 'c',
    title: 'ls',
    name: 'run_shell_command',
    kind: 'execute',
    rawInput: { command: 'ls' },
  })
  make(log)
  const call = log.settled
    .reduce(foldTranscript, emptyTranscript())
    .entries.find((entry) => entry.type === 'call')
  if (call?.type !== 'call') throw new Error('no call')
  return call
}
const rawOutput = { forModel: '' }

test('an error is named by its cause; one of a log from before has none', () => {
  expect(endLines('error', 'It says 401.', 'auth')).toEqual(['The provider refused the key', 'It says 401.'])
  expect(endLines('error', 'It failed.')).toEqual(['Something went wrong', 'It failed.'])
})

test('one cause of the last failures is said once', () => {
  const spent = NOTHING_SPENT.prompt
  const end: EndEntry = { type: 'end', id: 'p', reason: 'completed', stopReason: 'end_turn', spent, at: 0 }
  const failures: FailurePattern = { cause: 'denied', callIds: ['a', 'b'] }
  expect(failuresSentence(end)).toBeUndefined()
  const sentence = failuresSentence({ ...end, failures })
  expect(sentence).toBe('The last 2 calls failed for the same reason: it was not allowed.')
  const said = { ...end, text: `No answer. ${sentence ?? ''}`, failures }
  expect(failuresSentence(said)).toBeUndefined()
})

describe('a call in words', () => {
  test('from its turn to its exit code', () => {
    expect(statusWord(callAfter(() => undefined))).toBe('Queued')
    expect(statusWord(callAfter((log) => log.ask('c', [])))).toBe('Needs approval')
    expect(statusWord(callAfter((log) => log.started('c')))).toBe('Running')
    const exit = (code: number) =>
      callAfter((log) => log.outcome('c', { status: 'completed', rawOutput }, { exit: { code } }))
    expect([phaseOf(exit(0)), statusWord(exit(0))]).toEqual(['done', 'Exit 0'])
    expect([phaseOf(exit(2)), statusWord(exit(2))]).toEqual(['failed', 'Exit 2'])
    const killed = callAfter((log) =>
      log.outcome('c', { status: 'completed', rawOutput }, { exit: { signal: 'SIGSEGV' } }),
    )
    expect([phaseOf(killed), statusWord(killed)]).toEqual(['failed', 'SIGSEGV'])
  })

  test('what goes on in the background, here or in the session that this one was forked from', () => {
    const begun = (more: object) =>
      callAfter((log) => {
        const data = { background: { id: 'bg1', command: 'x', ...more } }
        log.outcome('c', { status: 'completed', rawOutput: { forModel: '', data } })
      })
    expect(statusWord(begun({}))).toBe('In the background')
    expect(statusWord(begun({ elsewhere: true }))).toBe('In another chat')
    const ended = (reason: FailureReason) =>
      callAfter((log) => {
        const data = { background: { id: 'bg1', command: 'x' } }
        log.started('c')
        log.outcome('c', { status: 'completed', rawOutput: { forModel: '', data } })
        log.happened({ type: 'background_ended', toolCallId: 'c', reason })
      })
    expect(statusWord(ended('sandbox_lost'))).toBe('Ended with its sandbox')
    expect(failureSentence(ended('sandbox_lost'))).toContain('exit code is unknown')
    expect(failureSentence(ended('out_of_memory'))).toContain('ran out of memory')
    expect(phaseOf(ended('out_of_memory'))).toBe('failed')
    expect(phaseOf(ended('cancelled'))).toBe('stopped')
  })

  test.each(failureReason.options)('%s has a word and a sentence', (reason) => {
    const call = callAfter((log) => {
      log.started('c')
      log.outcome('c', { status: 'failed', rawOutput }, { reason })
    })
    const isDecided = ['denied', 'cancelled', 'no_progress'].includes(reason)
    expect(phaseOf(call)).toBe(isDecided ? 'stopped' : 'failed')
    expect(statusWord(call)).not.toContain('_')
    expect(failureSentence(call)).toMatch(/\.$/)
  })

  test('what never began was not started, and says so in grey', () => {
    const ended = (reason: FailureReason, began: boolean) =>
      callAfter((log) => {
        if (began) log.started('c')
        log.outcome('c', { status: 'failed', rawOutput }, { reason })
      })
    for (const reason of ['cancelled', 'interrupted'] as const) {
      expect([statusWord(ended(reason, false)), phaseOf(ended(reason, false))]).toEqual([
        'Not started',
        'stopped',
      ])
      expect(failureSentence(ended(reason, false))).toContain('nothing changed')
      expect(opensItself(ended(reason, false))).toBe(false)
    }
    expect(statusWord(ended('cancelled', true))).toBe('Cancelled')
    expect([statusWord(ended('interrupted', true)), phaseOf(ended('interrupted', true))]).toEqual([
      'Interrupted',
      'failed',
    ])
  })

  test('red is for commands: a read that failed is amber and folded, unless it needs the person', () => {
    const read = (reason: FailureReason) => ({
      ...callAfter((log) => {
        log.started('c')
        log.outcome('c', { status: 'failed', rawOutput }, { reason })
      }),
      kind: 'read' as const,
    })
    expect([phaseOf(read('tool_error')), opensItself(read('tool_error'))]).toEqual(['missed', false])
    expect([phaseOf(read('needs_auth')), opensItself(read('needs_auth'))]).toEqual(['missed', true])
  })

  test('the answer to a question, in the words that were chosen or written', () => {
    const answered = (answer: object) =>
      callAfter((log) => {
        log.ask('c', [])
        log.happened({ type: 'approval_answered', toolCallId: 'c', allowed: true, by: 'user', ...answer })
      })
    expect(answerWords(answered({ optionId: 'once' }))).toBeUndefined()
    const asked = (answer: object): CallEntry => {
      const call = answered(answer)
      const question = { message: 'Which?', requestedSchema: { type: 'object' as const, properties: {} } }
      return call.approval === undefined ? call : { ...call, approval: { ...call.approval, question } }
    }
    expect(answerWords(asked({ optionId: 'once' }))).toBe('Allow')
    expect(
      answerWords(asked({ optionId: 'answer', content: { v: '1.2', parts: ['web', 'cli'], dry: true } })),
    ).toBe('1.2 · web, cli · yes')
    expect(answerWords(asked({ allowed: false, optionId: 'no' }))).toBe('Skipped')
  })

  test('a denial says who denied, and why', () => {
    const answered = (by: string, reason?: string) =>
      callAfter((log) => {
        log.ask('c', [])
        log.happened({
          type: 'approval_answered',
          toolCallId: 'c',
          allowed: false,
          by,
          reason,
        })
        log.outcome('c', { status: 'failed', rawOutput }, { reason: 'denied' })
      })
    expect(statusWord(answered('user'))).toBe('Denied')
    expect(failureSentence(answered('user'))).toBe('You denied this. Nothing ran.')
    expect(failureSentence(answered('user', 'use git'))).toContain('“use git”')
    expect(statusWord(answered('expiry'))).toBe('Approval expired')
  })
})

test('arguments: the command apart, the rest complete, and what is no object as it came', () => {
  expect(shownArguments({ command: 'ls', timeout_ms: 5, env: { a: 1 } })).toEqual({
    command: 'ls',
    fields: [
      { name: 'timeout_ms', text: '5', long: false },
      { name: 'env', text: '{\n  "a": 1\n}', long: true },
    ],
  })
  expect(shownArguments('{"command": "rm')).toEqual({ fields: [], raw: '{"command": "rm' })
  expect(shownArguments(['a'])).toEqual({ fields: [], raw: '[\n  "a"\n]' })
  expect(shownArguments(undefined)).toEqual({ fields: [] })
  expect(shownArguments({ command: ['rm', '-rf'] }).fields).toHaveLength(1)
})

test('what would not be seen in a command is shown by number', () => {
  const shown = (text: string) =>
    revealInvisible(text)
      .map((part) => (part.hidden === undefined ? part.text : `<${part.hidden}>`))
      .join('')
  expect(shown('echo a\u202eb\u200bc\u00add')).toBe('echo a<U+202E>b<U+200B>c<U+00AD>d')
  expect(shown('a\u{e0041}\u001b[8m')).toBe('a<U+E0041><U+001B>[8m')
  // A picture is seen, with what makes it one; a joiner between letters is not.
  expect(shown('❤️ 👩\u200d💻 👍🏽 a\u200db 1\ufe0f')).toBe('❤️ 👩\u200d💻 👍🏽 a<U+200D>b 1<U+FE0F>')
  expect(shown('tab\tand\nnewline, é, 漢字, 😀')).toBe('tab\tand\nnewline, é, 漢字, 😀')
})

test('shortcuts', () => {
  let own: OwnKeys = {}
  const press = (key: string, ...held: ('ctrl' | 'meta' | 'alt' | 'shift')[]) => {
    const pressed = {
      key,
      ctrlKey: held.includes('ctrl'),
      metaKey: held.includes('meta'),
      altKey: held.includes('alt'),
      shiftKey: held.includes('shift'),
    }
    return shortcutOf(pressed, own)
  }
  expect(press('Escape')).toBe('stop')
  expect(press('Escape', 'shift')).toBe('focus-composer')
  expect(press('O', 'ctrl', 'shift')).toBe('new-chat')
  expect(press('o', 'meta', 'shift')).toBe('new-chat')
  expect(press('Enter', 'ctrl', 'alt')).toBe('allow')
  expect(press('Backspace', 'ctrl', 'alt')).toBe('reject')
  expect(press('Enter', 'ctrl', 'alt', 'shift')).toBe('allow-all')
  expect(press('Enter', 'meta', 'alt')).toBeUndefined()
  expect(press('K', 'ctrl')).toBe('palette')
  expect(press('C', 'ctrl', 'shift')).toBe('copy-reply')
  expect([press(':', 'ctrl', 'shift'), press(';', 'meta', 'shift')]).toEqual(['copy-code', 'copy-code'])
  expect(press('Backspace', 'ctrl', 'shift')).toBe('delete-chat')
  expect(press('c', 'ctrl')).toBeUndefined()
  expect(press('/', 'ctrl', 'shift')).toBe('shortcuts')
  expect(press('r', 'ctrl')).toBeUndefined()
  expect(press('Enter')).toBeUndefined()
  own = { palette: 'Mod+J', allow: 'Ctrl+Alt+A' }
  expect([press('j', 'meta'), press('k', 'ctrl')]).toEqual(['palette', undefined])
  expect([press('a', 'ctrl', 'alt'), press('Enter', 'ctrl', 'alt')]).toEqual(['allow', undefined])
  expect(press('Enter', 'ctrl', 'alt', 'shift')).toBe('allow-all')
})

test('numbers for people', () => {
  expect([0, 812, 1400, 52_000_000, 999_999, 2 ** 31, 62.9 * 2 ** 30].map(formatBytes)).toEqual([
    '0 B',
    '812 B',
    '1.4 KiB',
    '50 MiB',
    '977 KiB',
    '2 GiB',
    '63 GiB',
  ])
  expect([12, 400, 9_990, 59_900, 185_000, 3_720_000].map(formatDuration)).toEqual([
    '12 ms',
    '0.4 s',
    '9.9 s',
    '59 s',
    '3 m 05 s',
    '1 h 02 m',
  ])
  const noon = new Date(2026, 10, 21, 12).getTime()
  const daysAgo = (days: number) => ageGroup(noon - days * 86_400_000, noon)
  expect([0, 1, 3, 20, 90].map(daysAgo)).toEqual([
    'Today',
    'Yesterday',
    'Last 7 days',
    'Last 30 days',
    'Older',
  ])
})

test('waits double up to 15 s and spread over their second half', () => {
  expect([1, 2, 3, 6, 50].map((attempt) => reconnectMs(attempt, () => 1))).toEqual([
    500, 1000, 2000, 15_000, 15_000,
  ])
  expect(reconnectMs(3, () => 0)).toBe(1000)
})

describe('a call that is being written', () => {
  test('says what it is about as soon as that can be read', () => {
    expect(['', '{', '{"pa', '{"path":', '{"path":"'].map(draftSubject)).toEqual(Array(5).fill(undefined))
    expect(draftSubject('{"path":"src/a')).toBe('src/a')
    expect(draftSubject('{ "command" : "echo \\"hi\\" \\u00fc","x":1')).toBe('echo "hi" ü')
    expect(draftSubject('{"todos":[{"content":"x"}]}')).toBeUndefined()
  })

  test('its end is readable wherever it was cut', () => {
    const whole = JSON.stringify({ content: 'a\n\tb "c" \\ d \u0001é'.repeat(3) })
    for (let end = 0; end <= whole.length; end++) {
      const shown = draftTail(whole.slice(0, end), 2)
      expect(shown).not.toMatch(/\\[nu"]/)
      expect(shown.split('\n').length).toBeLessThanOrEqual(2)
    }
    expect(draftTail('{"content":"one\\ntwo\\nthree', 2)).toBe('two\nthree')
  })
})

test('the page has one word for each thing', () => {
  const folder = join(import.meta.dirname, '../../src')
  const others = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    // Routes of the API, which nobody reads on the page.
    .filter((name) => /\.tsx?$/.test(name) && name !== join('net', 'routes.ts'))
    .flatMap((name) => {
      const source = readFileSync(join(folder, name), 'utf8').replaceAll(/^\s*(?:\/\/|\/?\*).*$/gm, '')
      // Quoted text with a space in it, and text between tags.
      const quoted = [...source.matchAll(/'[^'\n]*'|"[^"\n]*"|`[^`\n]*`|>[^<>{}()=;]*</g)].map(
        ([text]) => text,
      )
      return quoted.filter((text) => / /.test(text) && /\b(?:sessions?|rejected|your leave)\b/i.test(text))
    })
  expect(others).toEqual([])
})

test('an end whose text says it whole stands there once', () => {
  expect(endLines('max_turns', 'Reached the limit of 3 steps.')).toEqual(['Reached the limit of 3 steps.'])
  expect(endLines('max_turns', undefined)).toHaveLength(2)
  expect(endLines('error', 'The key is wrong.')).toEqual(['Something went wrong', 'The key is wrong.'])
})
