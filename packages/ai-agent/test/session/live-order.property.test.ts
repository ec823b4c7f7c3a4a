/** Live text takes a way of its own, and stands where it was said: before and behind the same settled events, over any interleaving. */
import { setImmediate } from 'node:timers/promises'
import { type SessionEvent, isLive, makeSandlotEvent, metaOf, textOf } from '@sandlot/shared/chat/events'
import { makeMeta } from '@sandlot/shared/chat/event-meta'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Model } from '../../src/model/model.ts'
import { memoryLog } from '../../src/plain/log-store.ts'
import { runAgent } from '../../src/plain/run-agent.ts'
import { Subscribers } from '../../src/session/subscription.ts'
import { scriptedModel } from '../support/scripted-model.ts'

const USER = { id: 'u_2', name: 'Bo' }

/** The lines of a screen: pieces of one text that follow each other are one. */
function screen(events: readonly SessionEvent[]): unknown[] {
  const shown: { id: string; from: number; text: string }[] = []
  const lines: unknown[] = []
  for (const event of events) {
    const { offset } = metaOf(event)
    if (event.sessionUpdate !== 'agent_message_chunk' || offset === undefined) {
      lines.push(event)
      continue
    }
    const last = shown.at(-1)
    const follows = last !== undefined && offset === last.from + last.text.length
    if (follows && last === lines.at(-1) && last.id === event.messageId) last.text += textOf(event)
    else lines.push(shown[shown.push({ id: event.messageId, from: offset, text: textOf(event) }) - 1])
  }
  return lines
}

const step = fc.oneof(
  { weight: 8, arbitrary: fc.record({ say: fc.constantFrom('a', 'b'), text: fc.string({ minLength: 1 }) }) },
  { weight: 2, arbitrary: fc.constant('draft' as const) },
  { weight: 2, arbitrary: fc.constant('settle' as const) },
  { weight: 2, arbitrary: fc.constant('turn' as const) },
  { weight: 2, arbitrary: fc.constantFrom('gap', 'join', 'leave', 'unshare', 'pace') },
)

test('every reader gets what was sent while it read, in order, whatever comes in one turn of the event loop', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const subscribers = new Subscribers()
      const sent: SessionEvent[] = []
      // Counted over both messages, so that an offset alone tells nothing.
      let offset = 0
      const readers: { from: number; to?: number; close: () => void; got: Promise<SessionEvent[]> }[] = []
      const join = (): void => {
        const { live, close } = subscribers.add([], 0, false, readers.length % 2 === 0 ? undefined : USER)
        const got: SessionEvent[] = []
        const read = async (): Promise<SessionEvent[]> => {
          for await (const event of live) got.push(event)
          return got
        }
        readers.push({ from: sent.length, close, got: read().catch(() => got) })
      }
      const show = (event: SessionEvent): void => {
        sent.push(event)
        subscribers.show(event)
      }
      join()
      for (const one of steps) {
        if (typeof one === 'object') {
          const meta = makeMeta({ live: true, offset }, sent.length)
          offset += one.text.length
          const content = { type: 'text' as const, text: one.text }
          show({ sessionUpdate: 'agent_message_chunk', messageId: one.say, content, _meta: meta })
        } else if (one === 'draft') {
          show(makeSandlotEvent({ type: 'ports_open', ports: [sent.length] }, { live: true }, sent.length))
        } else if (one === 'settle') {
          const ended = { type: 'turn_ended' as const, callIds: [] }
          sent.push(makeSandlotEvent(ended, {}, sent.length))
          subscribers.send(sent.at(-1) as SessionEvent)
        } else if (one === 'gap') offset++
        else if (one === 'turn') await setImmediate()
        else if (one === 'join') join()
        else if (one === 'pace') await subscribers.caughtUp()
        else {
          const reader = readers.at(-1)
          if (one === 'leave') reader?.close()
          else subscribers.unshare(new Set([USER.id]))
          for (const [place, other] of readers.entries())
            if (one === 'leave' ? other === reader : place % 2 === 1) other.to ??= sent.length
        }
      }
      for (const { close } of readers) close()
      for (const { from, to = sent.length, got } of readers)
        expect(screen(await got)).toEqual(screen(sent.slice(from, to)))
    }),
    { numRuns: 500 },
  )
})

const ways = fc.array(
  fc.record({ text: fc.stringMatching(/^[a-z]{1,3} $/), wait: fc.constantFrom('none', 'microtask', 'turn') }),
  { minLength: 1, maxLength: 30 },
)

/** Says these words, and hears an abort. */
function speaker(words: { text: string; wait: string }[]): Model {
  return {
    ...scriptedModel([]),
    async stream(_request, signal, onPiece) {
      let text = ''
      for (const word of words) {
        signal.throwIfAborted()
        onPiece({ type: 'text', text: word.text })
        text += word.text
        if (word.wait === 'microtask') await Promise.resolve()
        if (word.wait === 'turn') await setImmediate()
      }
      return { text, thought: '', calls: [], finish: 'stop', usage: {} }
    },
  }
}

test('a run that is stopped, or ends and goes on: the text that was shown is settled behind it, or withdrawn', async () => {
  const end = fc.record({ after: fc.nat(40), how: fc.constantFrom('stop', 'crash') })
  await fc.assert(
    fc.asyncProperty(ways, end, async (words, { after, how }) => {
      const log = memoryLog()
      const stop = new AbortController()
      const seen: SessionEvent[] = []
      for await (const event of runAgent({
        model: speaker(words),
        tools: [],
        log,
        prompt: 'go',
        signal: stop.signal,
      })) {
        seen.push(event)
        if (seen.length !== after) continue
        if (how === 'crash') break
        stop.abort('cancelled')
      }
      if ((await log.read()).every((event) => metaOf(event).event?.type !== 'prompt_ended'))
        for await (const event of runAgent({ model: speaker(words), tools: [], log })) seen.push(event)
      const settled = seen.filter((event) => !isLive(event))
      const seqs = settled.map((event) => metaOf(event).seq)
      expect(seqs).toEqual(seqs.toSorted((one, other) => (one ?? 0) - (other ?? 0)))
      expect((await log.read()).filter(isLive)).toEqual([])
      const texts = new Map<string, string>()
      for (const event of seen) {
        const gone = metaOf(event).event
        if (gone?.type === 'message_withdrawn') texts.delete(gone.messageId)
        if (event.sessionUpdate !== 'agent_message_chunk') continue
        const before = texts.get(event.messageId) ?? ''
        if (isLive(event)) {
          expect(metaOf(event).offset).toBe(before.length)
          texts.set(event.messageId, before + textOf(event))
        } else {
          expect(textOf(event)).toBe(before)
          texts.delete(event.messageId)
        }
      }
      expect([...texts]).toEqual([])
    }),
    { numRuns: 200 },
  )
})
