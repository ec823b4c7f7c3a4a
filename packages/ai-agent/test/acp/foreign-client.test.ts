import type { SessionUpdate } from '@agentclientprotocol/sdk'
import { type SessionEvent, makeSandlotEvent } from '@sandlot/shared/chat/events'
import { makeMeta } from '@sandlot/shared/chat/event-meta'
import { describe, expect, test } from 'vitest'
import {
  FOREIGN_START,
  type ForeignOptions,
  type ForeignState,
  forForeignClient,
  withOwnMessage,
} from '../../src/acp/editor/foreign-client.ts'

const PLAIN: ForeignOptions = { terminal: undefined }
const TERMINAL: ForeignOptions = { terminal: 'terminal_output' }

function translate(
  events: readonly SessionEvent[],
  options = PLAIN,
  from: ForeignState = FOREIGN_START,
): SessionUpdate[] {
  let state = from
  return events.flatMap((event) => {
    const translated = forForeignClient(state, event, options)
    state = translated.state
    return translated.updates
  })
}

/** The text that a client shows that appends chunks. */
function shown(updates: readonly SessionUpdate[]): string {
  return updates
    .map((update) =>
      update.sessionUpdate === 'agent_message_chunk' && update.content.type === 'text'
        ? update.content.text
        : '',
    )
    .join('')
}

function say(text: string, offset?: number, messageId = 'm_1'): SessionEvent {
  const live = offset === undefined ? {} : { live: true as const, offset }
  return {
    sessionUpdate: 'agent_message_chunk',
    messageId,
    content: { type: 'text', text },
    _meta: makeMeta(live, 1),
  }
}

function user(messageId: string): SessionEvent {
  return {
    sessionUpdate: 'user_message_chunk',
    messageId,
    content: { type: 'text', text: 'hi' },
    _meta: makeMeta({}, 1),
  }
}

function call(kind: 'execute' | 'read'): SessionEvent {
  return {
    sessionUpdate: 'tool_call',
    toolCallId: 'c1',
    title: 'ls',
    name: 'run_shell_command',
    kind,
    status: 'pending',
    rawInput: {},
    _meta: makeMeta({}, 1),
  }
}

function output(offset: number, data: string, at: number): SessionEvent {
  const piece = { offset, end: offset + data.length, data }
  return {
    sessionUpdate: 'tool_call_update',
    toolCallId: 'c1',
    _meta: makeMeta({ live: true, output: piece }, at),
  }
}

function outcome(forModel: string): SessionEvent {
  return {
    sessionUpdate: 'tool_call_update',
    toolCallId: 'c1',
    status: 'completed',
    rawOutput: { forModel },
    _meta: makeMeta({ exit: { code: 3 } }, 9_000),
  }
}

describe('for a client that is not ours', () => {
  test('text that was streamed does not come again when it settles; text that was not, does', () => {
    expect(shown(translate([say('Hel', 0), say('lo', 3), say('Hello')]))).toBe('Hello')
    expect(shown(translate([say('Hello')]))).toBe('Hello')
    expect(shown(translate([say('Hel', 0), say('Hello')]))).toBe('Hello')
  })

  test('a snapshot after a resume adds only what is new', () => {
    expect(shown(translate([say('Hel', 0), say('Hello w', 0), say('orld', 7), say('Hello world')]))).toBe(
      'Hello world',
    )
  })

  test('a withdrawn answer is closed with a note before the next one', () => {
    const withdrawn = makeSandlotEvent({ type: 'message_withdrawn', messageId: 'm_1', why: 'timeout' }, {}, 1)
    const text = shown(
      translate([say('Half', 0), withdrawn, say('Whole', 0, 'm_2'), say('Whole', undefined, 'm_2')]),
    )
    expect(text).toMatch(/^Half\s+\(.*\)\s+Whole$/)
    expect(translate([withdrawn])).toEqual([])
  })

  test('the echo of its own prompt is dropped, another’s message is shown', () => {
    const state = withOwnMessage(FOREIGN_START, 'm_own')
    expect(translate([user('m_own')], PLAIN, state)).toEqual([])
    expect(translate([user('m_other')], PLAIN, state)).toMatchObject([
      { sessionUpdate: 'user_message_chunk' },
    ])
  })

  test('what the page notes is a notice where those are shown; a compaction is one only where it is shown in no other way', () => {
    const compacted = (why: 'window' | 'asked') =>
      makeSandlotEvent({ type: 'compacted', summary: 'They like blue.', upTo: 3, why }, {}, 1)
    const changed = makeSandlotEvent({ type: 'model_changed', model: 'm-2', why: 'quota' }, {}, 1)
    const events = [compacted('window'), compacted('asked'), changed]
    const fallback = {
      sessionUpdate: 'notice',
      severity: 'warning',
      title: 'Answered by m-2 because the previous model had no quota left',
    }
    expect(translate(events)).toEqual([])
    expect(translate(events, { ...PLAIN, notices: true })).toEqual([
      {
        sessionUpdate: 'notice',
        severity: 'info',
        title: 'Earlier messages were summarised to free up context',
      },
      fallback,
    ])
    expect(translate(events, { ...PLAIN, notices: true, compaction: true })).toMatchObject([
      { sessionUpdate: 'compaction_update', status: 'completed' },
      { sessionUpdate: 'compaction_update', status: 'completed' },
      fallback,
    ])
  })

  test('the sentence of an end is said; our other events are not', () => {
    const end = makeSandlotEvent(
      { type: 'prompt_ended', stopReason: 'end_turn', reason: 'error', text: 'No key.' },
      {},
      1,
    )
    const started = makeSandlotEvent({ type: 'prompt_started' }, {}, 1)
    expect(shown(translate([started, end]))).toBe('No key.')
    expect(translate([started, end])).toHaveLength(1)
  })

  test('an end by a wrong setting comes with the advice for administrators', () => {
    const about = { cause: 'auth', setIn: 'configuration', text: 'No key.' } as const
    const end = { type: 'prompt_ended', stopReason: 'end_turn', reason: 'error', ...about } as const
    expect(shown(translate([makeSandlotEvent(end, {}, 1)]))).toMatch(/^No key\. Set OPENAI_API_KEY/)
  })

  test('nothing of ours is on the wire', () => {
    const events = [user('m'), say('x', 0), say('x'), call('execute'), output(0, 'a', 1_000), outcome('a')]
    for (const options of [PLAIN, TERMINAL]) {
      expect(JSON.stringify(translate(events, options))).not.toContain('sandlot')
    }
  })

  test.each(['terminal_output', 'terminal_output_delta'] as const)(
    'with the convention %s: a terminal, its data, its exit',
    (terminal) => {
      const updates = translate(
        [call('execute'), output(0, 'one\n', 1_000), output(4, 'two\n', 1_001), outcome('one\ntwo\n')],
        { terminal },
      )
      expect(updates).toMatchObject([
        {
          content: [{ type: 'terminal', terminalId: 'c1' }],
          _meta: { terminal_info: { terminal_id: 'c1' } },
        },
        { _meta: { [terminal]: { terminal_id: 'c1', data: 'one\n' } } },
        { _meta: { [terminal]: { terminal_id: 'c1', data: 'two\n' } } },
        { status: 'completed', _meta: { terminal_exit: { terminal_id: 'c1', exit_code: 3, signal: null } } },
      ])
      const quick = translate([call('execute'), outcome('all of it')], { terminal })
      expect(quick.at(-1)).toMatchObject({ _meta: { [terminal]: { data: 'all of it' } } })
    },
  )

  test('without it: bounded text, repeated at most twice a second, and the result at the end', () => {
    const updates = translate([
      call('execute'),
      output(0, 'one\n', 1_000),
      output(4, 'two\n', 1_100),
      output(8, 'three\n', 1_600),
      output(8, 'three\n', 1_700),
      outcome('all'),
    ])
    expect(updates.slice(1)).toMatchObject([
      { content: [{ content: { text: 'one\n' } }] },
      { content: [{ content: { text: 'one\ntwo\nthree\n' } }] },
      { status: 'completed', content: [{ content: { text: 'all' } }] },
    ])
    const flood = translate([
      call('execute'),
      ...Array.from({ length: 50 }, (_, n) => output(n * 1_000, 'x'.repeat(1_000), n * 1_000)),
    ])
    for (const update of flood) expect(JSON.stringify(update).length).toBeLessThan(9_000)
  })
})
