import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  isLive,
  isOutcome,
  makeSandlotEvent,
  metaOf,
  seqOf,
  sessionEvent,
  type SessionEvent,
  textOf,
} from '../../src/chat/events.ts'
import { activityOf, pendingApprovals } from '../../src/transcript/activity.ts'
import { secondsLeft, waitWords } from '../../src/transcript/cause-words.ts'
import { draftOf, draftText, endsDrafts } from '../../src/transcript/call-drafts.ts'
import { makeMeta } from '../../src/chat/event-meta.ts'
import { WITHOUT_WORDS } from '../../src/chat/images.ts'
import type { CallEntry } from '../../src/transcript/entries.ts'
import { emptyTranscript, foldTogether, foldTranscript, leavesHole } from '../../src/transcript/transcript.ts'
import { call, callUpdate, draft, outcome, Recorder, session, text } from './scripts.ts'

/**
 * Events of a resume after `after` when the stream stands at `position`: settled, snapshots, then
 * the live tail.
 */
function resume(events: readonly SessionEvent[], after: number, position: number): SessionEvent[] {
  const past = events.slice(0, position)
  const settled = past.filter((event) => (seqOf(event) ?? 0) > after)
  const closed = new Set<string>()
  for (const event of past) {
    if (isLive(event)) continue
    if ('messageId' in event) closed.add(event.messageId)
    if (isOutcome(event)) closed.add(event.toolCallId)
    const happened = metaOf(event).event
    if (happened?.type === 'message_withdrawn') closed.add(happened.messageId)
  }
  const texts = new Map<string, SessionEvent>()
  const outputs = new Map<string, SessionEvent>()
  const drafts = new Map<string, SessionEvent>()
  for (const event of past) {
    if (endsDrafts(event)) drafts.clear()
    if (!isLive(event)) continue
    const drafted = draftOf(event)
    if (drafted !== undefined) drafts.set(`${drafted.messageId} ${drafted.place}`, event)
    if (event.sessionUpdate === 'agent_message_chunk' || event.sessionUpdate === 'agent_thought_chunk') {
      if (closed.has(event.messageId)) continue
      const before = texts.get(event.messageId)
      const soFar = before !== undefined && 'messageId' in before ? textOf(before) : ''
      texts.set(event.messageId, {
        ...event,
        content: { type: 'text', text: soFar + textOf(event) },
        _meta: { sandlot: { ...metaOf(event), offset: 0 } },
      })
    } else if (event.sessionUpdate === 'tool_call_update' && !closed.has(event.toolCallId)) {
      const piece = metaOf(event).output
      const before = outputs.get(event.toolCallId)
      const beforePiece = before === undefined ? undefined : metaOf(before).output
      if (piece === undefined) continue
      outputs.set(event.toolCallId, {
        ...event,
        _meta: {
          sandlot: {
            ...metaOf(event),
            output: { offset: 0, end: piece.end, data: (beforePiece?.data ?? '') + piece.data },
          },
        },
      })
    }
  }
  return [...settled, ...texts.values(), ...drafts.values(), ...outputs.values(), ...events.slice(position)]
}

/** The state without parts that may differ in flight: the pieces of live output, and its start. */
function shown(events: readonly SessionEvent[]): unknown {
  const transcript = events.reduce(foldTranscript, emptyTranscript())
  return {
    ...transcript,
    entries: transcript.entries.map((entry) =>
      entry.type === 'call'
        ? {
            ...entry,
            output: { end: entry.output.end, text: entry.output.pieces.map((p) => p.data).join('') },
          }
        : entry.type === 'message' && !entry.settled
          ? { ...entry, at: 0 }
          : entry,
    ),
  }
}

describe('an answer that broke off', () => {
  const fields = { promptId: 'p', turn: 1 }
  const why = 'stream_interrupted' as const
  const shown = { role: 'assistant', text: 'Half an ans' } as const
  function broken(): Recorder {
    const recorder = new Recorder()
    recorder.happened({ type: 'prompt_started' }, { promptId: 'p' })
    recorder.live(text('agent_message_chunk', 'm1', 'Half an ans', { ...fields, live: true, offset: 0 }))
    recorder.happened({ type: 'message_withdrawn', messageId: 'm1', why, shown }, fields)
    const wait = { type: 'model_waited', why, waitMs: 6_000, retry: 2, of: 3 } as const
    recorder.live((at) => makeSandlotEvent(wait, { ...fields, live: true }, at))
    return recorder
  }

  test('stays as far as it was read, marked as cut, before what is said anew, live and after a reload', () => {
    const recorder = broken()
    recorder.live(text('agent_message_chunk', 'm1', ' late', { ...fields, live: true, offset: 11 }))
    recorder.live(text('agent_message_chunk', 'm2', 'Whole', { ...fields, live: true, offset: 0 }))
    recorder.settled(text('agent_message_chunk', 'm2', 'Whole.', fields))
    const read = (events: SessionEvent[]) =>
      events
        .reduce(foldTranscript, emptyTranscript())
        .entries.map((entry) => (entry.type === 'message' ? [entry.text, entry.settled, entry.cut] : entry))
    const said = [
      ['Half an ans', true, why],
      ['Whole.', true, undefined],
    ]
    expect(read(recorder.events)).toEqual(said)
    expect(read(recorder.events.filter((event) => !isLive(event)))).toEqual(said)
  })

  test('is waited for in sight until anything comes of it', () => {
    const recorder = broken()
    const [waited] = recorder.events.slice(-1)
    const at = waited === undefined ? 0 : metaOf(waited).at
    const wait = { why, retry: 2, of: 3, waitMs: 6_000, until: at + 6_000 }
    expect([at - 9_000, at, at + 100, at + 5_500, at + 7_000].map((now) => secondsLeft(wait, now))).toEqual([
      6, 6, 6, 1, 0,
    ])
    const activity = () => activityOf(recorder.events.reduce(foldTranscript, emptyTranscript()))
    expect(activity()).toEqual({ doing: 'trying_again', wait })
    expect(waitWords(wait, 6)).toBe('The connection to the model was lost; retrying in 6 s, 2 of 3')
    expect(waitWords(wait, 0)).toBe('The connection to the model was lost; retrying, 2 of 3')
    recorder.live(text('agent_message_chunk', 'm2', 'W', { ...fields, live: true, offset: 0 }))
    expect(activity()).toEqual({ doing: 'writing' })
    expect(recorder.events.reduce(foldTranscript, emptyTranscript()).wait).toBeNull()
  })
})

test('a call that waits for its sandbox says so, and since when', () => {
  const fields = { promptId: 'p', turn: 1 }
  const recorder = new Recorder()
  recorder.happened({ type: 'prompt_started' }, { promptId: 'p' })
  recorder.settled(call('c', fields))
  const activity = () => activityOf(recorder.events.reduce(foldTranscript, emptyTranscript()))
  expect(activity()).toEqual({ doing: 'running', calls: 1 })
  const progress = { message: 'Starting the sandbox' }
  recorder.live(callUpdate('c', {}, { ...fields, live: true, progress }))
  const [said] = recorder.events.slice(-1)
  const since = said === undefined ? 0 : metaOf(said).at
  recorder.live(callUpdate('c', {}, { ...fields, live: true, progress }))
  expect(activity()).toEqual({ doing: 'preparing', ...progress, since })
  recorder.settled(callUpdate('c', { status: 'in_progress' }, { ...fields, attempt: { n: 1, boot: 'b' } }))
  expect(activity()).toEqual({ doing: 'running', calls: 1 })
})

describe('a call that is being written', () => {
  const fields = { promptId: 'p', turn: 1 }
  function writing(): Recorder {
    const recorder = new Recorder()
    recorder.happened({ type: 'prompt_started' }, { promptId: 'p' })
    recorder.live(text('agent_message_chunk', 'm', 'I write it.', { ...fields, live: true, offset: 0 }))
    recorder.live(draft('m', 1, 5, fields))
    recorder.live(draft('m', 0, 300, fields))
    recorder.live(draft('m', 0, 20, fields))
    return recorder
  }
  const draftsOf = ({ events }: Recorder) =>
    events.reduce(foldTranscript, emptyTranscript()).drafts.map(({ place, chars }) => [place, chars])

  test('is shown while it grows, in the order of the calls; an older state changes nothing', () => {
    const recorder = writing()
    expect(draftsOf(recorder)).toEqual([
      [0, 300],
      [1, 5],
    ])
    expect(activityOf(recorder.events.reduce(foldTranscript, emptyTranscript()))).toEqual({
      doing: 'writing',
    })
  })

  test('is gone once its message is whole, or taken back, or its prompt has ended; a late one is not shown', () => {
    const ends: ((recorder: Recorder) => void)[] = [
      (recorder) => recorder.settled(call('c', fields)),
      (recorder) => recorder.settled(text('agent_message_chunk', 'm', 'I write it.', fields)),
      (recorder) => recorder.happened({ type: 'message_withdrawn', messageId: 'm', why: 'broken' }, fields),
      (recorder) =>
        recorder.happened({ type: 'prompt_ended', stopReason: 'cancelled', reason: 'cancelled' }, fields),
    ]
    for (const end of ends) {
      const recorder = writing()
      end(recorder)
      expect(draftsOf(recorder)).toEqual([])
      recorder.live(draft('m', 0, 900, fields))
      expect(draftsOf(recorder)).toEqual([])
    }
  })

  test('of long arguments the beginning and the end are shown', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 3_000, unit: 'grapheme' }), (args) => {
        const shown = draftText(args)
        expect(shown.length).toBeLessThanOrEqual(1_250)
        expect(shown.isWellFormed()).toBe(true)
        if (args.length <= 1_200) expect(shown).toBe(args)
        else expect(args.startsWith(shown.slice(0, 199)) && args.endsWith(shown.slice(-998))).toBe(true)
      }),
    )
  })
})

describe('the fold', () => {
  test('every event of a session passes the schema', () => {
    fc.assert(
      fc.property(session, (events) => {
        for (const event of events) expect(sessionEvent.parse(event)).toEqual(event)
      }),
      { numRuns: 30 },
    )
  })

  test('cutting a stream anywhere, resending and resuming gives the same screen', () => {
    fc.assert(
      fc.property(session, fc.nat(), fc.nat(), fc.nat(), (events, a, b, c) => {
        // The client saw `seen` events; the server stood at `position` when it resumed; `until` is when we look.
        const seen = a % (events.length + 1)
        const position = seen + (b % (events.length - seen + 1))
        const until = position + (c % (events.length - position + 1))
        const before = events.slice(0, seen).reduce(foldTranscript, emptyTranscript())
        const resumed = resume(events.slice(0, until), before.seq, position)
        expect(shown([...events.slice(0, seen), ...resumed])).toEqual(shown(events.slice(0, until)))
      }),
      { numRuns: 300 },
    )
  })

  test('resending from any earlier point changes nothing', () => {
    fc.assert(
      fc.property(session, fc.nat(), fc.nat(), (events, a, b) => {
        const until = a % (events.length + 1)
        const from = b % (until + 1)
        const once = shown(events.slice(0, until))
        expect(shown([...events.slice(0, until), ...events.slice(from, until)])).toEqual(once)
      }),
      { numRuns: 300 },
    )
  })

  test('losing any live events gives the same screen once everything is settled', () => {
    fc.assert(
      fc.property(session, fc.infiniteStream(fc.boolean()), (events, losses) => {
        const rest = events.filter((event) => !isLive(event) || losses.next().value === true)
        expect(rest.reduce(foldTranscript, emptyTranscript())).toEqual(
          events.reduce(foldTranscript, emptyTranscript()),
        )
      }),
      { numRuns: 300 },
    )
  })

  test('folded together, events give the same screen, and leave the one before as it was', () => {
    fc.assert(
      fc.property(session, fc.nat(), (events, cut) => {
        const at = cut % (events.length + 1)
        const before = events.slice(0, at).reduce(foldTranscript, emptyTranscript())
        const copy = structuredClone(before)
        const after = foldTogether(() => events.slice(at).reduce(foldTranscript, before))
        expect(after).toEqual(events.reduce(foldTranscript, emptyTranscript()))
        expect(before).toEqual(copy)
      }),
      { numRuns: 300 },
    )
  })

  test('folded together, settled events share one list of entries', () => {
    const recorder = new Recorder()
    for (const promptId of ['one', 'two', 'three']) {
      recorder.happened({ type: 'prompt_started' }, { promptId })
      recorder.settled(text('user_message_chunk', `u_${promptId}`, 'hello', { promptId }))
      recorder.happened({ type: 'prompt_ended', reason: 'completed', stopReason: 'end_turn' }, { promptId })
    }
    const lists = (): Set<unknown> => {
      let transcript = emptyTranscript()
      return new Set(recorder.events.map((event) => (transcript = foldTranscript(transcript, event)).entries))
    }
    expect(lists().size).toBeGreaterThan(2)
    expect(foldTogether(lists).size).toBe(2)
  })

  test('an event that changes nothing returns the same object, and untouched entries keep their identity', () => {
    fc.assert(
      fc.property(session, (events) => {
        let transcript = emptyTranscript()
        for (const event of events) {
          const next = foldTranscript(transcript, event)
          expect(foldTranscript(next, event)).toBe(next)
          const changed = next.entries.filter((entry) => !transcript.entries.includes(entry))
          expect(changed.length).toBeLessThanOrEqual(1)
          transcript = next
        }
      }),
      { numRuns: 50 },
    )
  })

  test('a hole is seen and not folded', () => {
    const recorder = new Recorder()
    recorder.happened({ type: 'prompt_started' }, { promptId: 'p' })
    recorder.settled(text('user_message_chunk', 'u', 'hello'))
    recorder.settled(call('c'))
    const [first, , third] = recorder.events as [SessionEvent, SessionEvent, SessionEvent]
    const transcript = foldTranscript(emptyTranscript(), first)
    expect(leavesHole(transcript, third)).toBe(true)
    expect(foldTranscript(transcript, third)).toBe(transcript)
    expect(recorder.events.reduce(foldTranscript, transcript).entries.map((entry) => entry.id)).toEqual([
      'u',
      'c',
    ])
  })

  test('room that was made and another model are noted where they happened, the machinery is not', () => {
    const recorder = new Recorder()
    const room = (summary: string) =>
      recorder.happened({ type: 'compacted', summary, upTo: 1, why: 'window' }, { promptId: 'p' })
    const notes = (): unknown[] =>
      recorder.events
        .reduce(foldTranscript, emptyTranscript())
        .entries.map((entry) =>
          entry.type !== 'note'
            ? entry.id
            : entry.event.type === 'compacted'
              ? `compacted ${entry.event.summary}`
              : 'model' in entry.event && entry.event.model,
        )
    recorder.happened({ type: 'prompt_started' }, { promptId: 'p' })
    recorder.settled(text('user_message_chunk', 'u', 'hello', { promptId: 'p' }))
    recorder.happened({ type: 'instructions', text: 'Be brief.' })
    room('')
    expect(notes()).toEqual(['u', 'compacted '])
    room('They spoke.')
    room('')
    recorder.live(text('agent_message_chunk', 'm', 'I', { live: true, offset: 0 }))
    recorder.happened({ type: 'model_changed', model: 'other', why: 'quota' }, { promptId: 'p' })
    recorder.happened({ type: 'prompt_resumed', times: 1 }, { promptId: 'p' })
    recorder.happened({ type: 'history_mended', why: 'refused' }, { promptId: 'p' })
    expect(notes()).toEqual(['u', 'compacted They spoke.', 'other', 'm'])
    room('Again.')
    expect(notes()).toEqual(['u', 'compacted They spoke.', 'other', 'compacted Again.', 'm'])
  })

  test('what a prompt changed stands before its end', () => {
    const recorder = new Recorder()
    const files = [{ path: 'a', kind: 'created' as const, size: 1 }]
    recorder.happened({ type: 'prompt_started' }, { promptId: 'p' })
    recorder.happened({ type: 'files_changed', files, more: 2 }, { promptId: 'p' })
    recorder.happened(
      { type: 'prompt_ended', stopReason: 'end_turn', reason: 'completed' },
      { promptId: 'p' },
    )
    const { entries } = recorder.events.reduce(foldTranscript, emptyTranscript())
    expect(entries).toMatchObject([
      { type: 'changes', id: 'p', files, more: 2 },
      { type: 'end', id: 'p' },
    ])
  })

  test('the end of a prompt knows that its last calls failed for one cause, of this prompt only', () => {
    const recorder = new Recorder()
    const prompt = (promptId: string, reasons: ('timeout' | 'denied')[]): unknown => {
      recorder.happened({ type: 'prompt_started' }, { promptId })
      reasons.forEach((reason, n) => {
        recorder.settled(call(`${promptId}${n}`, { promptId }))
        const failed = { status: 'failed', rawOutput: { forModel: 'no' } } as const
        recorder.settled(callUpdate(`${promptId}${n}`, failed, { promptId, reason }))
      })
      recorder.happened({ type: 'prompt_ended', stopReason: 'end_turn', reason: 'completed' }, { promptId })
      const end = recorder.events.reduce(foldTranscript, emptyTranscript()).entries.at(-1)
      return end?.type === 'end' ? end.failures : end
    }
    expect(prompt('a', ['timeout', 'denied', 'denied'])).toEqual({ cause: 'denied', callIds: ['a1', 'a2'] })
    expect(prompt('b', ['denied'])).toBeUndefined()
  })

  test('what is in flight has words: thinking, writing, running, waiting, reading the results', () => {
    const recorder = new Recorder()
    const doing = (): string | undefined =>
      activityOf(recorder.events.reduce(foldTranscript, emptyTranscript()))?.doing
    expect(doing()).toBeUndefined()
    recorder.happened({ type: 'prompt_started' }, { promptId: 'p' })
    recorder.settled(text('user_message_chunk', 'u', 'hello', { promptId: 'p' }))
    expect(doing()).toBe('thinking')
    recorder.live(text('agent_message_chunk', 'm', 'I ', { live: true, offset: 0 }))
    expect(doing()).toBe('writing')
    recorder.settled(text('agent_message_chunk', 'm', 'I will'))
    recorder.settled(call('c'))
    expect(doing()).toBe('running')
    recorder.happened({ type: 'approval_asked', toolCallId: 'c', options: [], expiresAt: 1 })
    expect(doing()).toBe('waiting')
    expect(
      pendingApprovals(recorder.events.reduce(foldTranscript, emptyTranscript())).map((entry) => entry.id),
    ).toEqual(['c'])
    recorder.happened({ type: 'approval_answered', toolCallId: 'c', allowed: true, by: 'user' })
    recorder.settled(callUpdate('c', { status: 'in_progress' }))
    expect(doing()).toBe('running')
    recorder.settled(outcome('c', 'done'))
    expect(doing()).toBe('reading_results')
    recorder.happened(
      { type: 'prompt_ended', stopReason: 'end_turn', reason: 'completed' },
      { promptId: 'p' },
    )
    expect(doing()).toBeUndefined()
  })

  test('an outcome replaces the live output, and a second outcome changes nothing', () => {
    const recorder = new Recorder()
    recorder.happened({ type: 'prompt_started' }, { promptId: 'p' })
    recorder.settled(call('c'))
    recorder.live(callUpdate('c', {}, { live: true, output: { offset: 0, end: 3, data: 'abc' } }))
    recorder.settled(outcome('c', 'abc'))
    recorder.settled(callUpdate('c', { status: 'failed' }, { reason: 'cancelled' }))
    const entry = recorder.events.reduce(foldTranscript, emptyTranscript()).entries[0] as CallEntry
    expect(entry).toMatchObject({
      status: 'completed',
      output: { pieces: [] },
      rawOutput: { forModel: 'abc' },
    })
    expect(entry.reason).toBeUndefined()
  })
})

test('images stand with their message, in order, and what stands for words is not shown; alone they are a message', () => {
  const recorder = new Recorder()
  const image = (id: string, uri: string) =>
    recorder.settled((at) => ({
      sessionUpdate: 'user_message_chunk',
      messageId: id,
      content: { type: 'image', mimeType: 'image/png', data: '', uri },
      _meta: makeMeta({}, at),
    }))
  recorder.settled(text('user_message_chunk', 'm_a', 'look'))
  image('m_a_1', '/1')
  image('m_a_2', '/2')
  recorder.settled(text('user_message_chunk', 'm_b', WITHOUT_WORDS))
  image('m_b_1', '/3')
  recorder.settled(text('agent_message_chunk', 'm_c', 'seen'))
  image('m_d_1', '/4')
  expect(recorder.events.reduce(foldTranscript, emptyTranscript()).entries).toMatchObject([
    { text: 'look', images: [{ uri: '/1' }, { uri: '/2' }] },
    { text: '', images: [{ uri: '/3' }] },
    { role: 'assistant', text: 'seen' },
    { role: 'user', text: '', images: [{ uri: '/4' }] },
  ])
})
