/**
 * Items that a provider wants back with its answers: they return to that provider alone, in the
 * order in which they came, and no reader ever sees them.
 */
import { type SessionEvent, metaOf } from '@sandlot/shared/chat/events'
import { describe, expect, test } from 'vitest'
import { documentOf, exportPrompt } from '../../src/loop/prompt-export.ts'
import { type ModelMessage, ModelError, type ReplayItem } from '../../src/model/model.ts'
import type { Session } from '../../src/session/session.ts'
import { AgentBench, ask, happened, newSession } from '../support/agent-fixture.ts'
import { type ScriptedAnswer, type ScriptedModel, scriptedModel } from '../support/scripted-model.ts'

const CANARY = 'canary-7c1e'
const call = (id: string) => ({ id, name: 'echo', args: { text: id } })
const reasoning = (size = 0): ReplayItem => ({ raw: { type: 'reasoning', data: CANARY + 'x'.repeat(size) } })
const thinking = (id: string, size?: number): ScriptedAnswer => ({
  text: 'I look.',
  calls: [call(id)],
  replay: [reasoning(size), { chars: 7 }, { call: 0, raw: { signature: CANARY } }],
})
const refused = (): never => {
  throw new ModelError('replay_refused', 'The signature is not valid.', { retryable: false })
}
const at = (origin: string, wire = 'responses') => ({ name: 'm', wire, origin })

/** The items of each assistant message of the last request. */
function replayed(model: ScriptedModel): unknown[] {
  return (model.requests.at(-1)?.messages ?? []).flatMap((message: ModelMessage) =>
    message.role === 'assistant' ? [message.replay] : [],
  )
}

/** All that a reader of the session gets, from its first event on. */
async function everythingRead(session: Session): Promise<SessionEvent[]> {
  const { catchUp, close } = session.subscribe(0, false)
  close()
  return [...catchUp]
}

describe('an answer’s items', () => {
  test.each([0, 300 * 1024])(
    'return unchanged, also those of %d bytes, and no reader sees them',
    async (size) => {
      await using bench = await AgentBench.start()
      const model = scriptedModel([thinking('c1', size), { text: 'Done.' }, { text: 'Again.' }], at('o1'))
      const core = await bench.core({ parts: { model } })
      const session = await newSession(core)
      const live = session.subscribe(0, false)
      const { promptId } = await ask(session, 'go')
      expect(replayed(model)).toEqual([
        [reasoning(size), { chars: 7 }, { call: 0, raw: { signature: CANARY } }],
      ])
      const shown = await live.live.takeAll()
      live.close()
      expect(shown.length).toBeGreaterThan(3)
      const record = await exportPrompt(session.log, promptId)
      const documents = record === undefined ? [] : await Array.fromAsync(documentOf(record))
      const read = JSON.stringify([shown, await everythingRead(session), documents])
      expect(read).toContain('I look.')
      expect(read).not.toContain(CANARY)
      // They are there for the provider: short ones in the log, long ones as a stored output.
      expect(JSON.stringify(session.log).includes(CANARY)).toBe(size === 0)

      await core.leave()
      const after = await bench.core({ parts: { model } })
      await ask(await after.manager.get('u_ada', session.id), 'and now?')
      expect(replayed(model)[0]).toEqual([
        reasoning(size),
        { chars: 7 },
        { call: 0, raw: { signature: CANARY } },
      ])
    },
  )

  test('go with a copy of the chat, also long ones', async () => {
    await using bench = await AgentBench.start()
    const model = scriptedModel([thinking('c1', 300 * 1024), { text: 'Done.' }, { text: 'Again.' }], at('o1'))
    const core = await bench.core({ parts: { model } })
    const session = await newSession(core)
    const { promptId } = await ask(session, 'go')
    const copy = await core.manager.fork('u_ada', session.id, { promptId, where: 'after' })
    await ask(copy, 'and now?')
    expect(replayed(model)[0]).toContainEqual(reasoning(300 * 1024))
  })

  test.each([
    ['another origin', at('o2'), undefined],
    ['another wire', at('o1', 'anthropic'), undefined],
    [
      'the same origin under another name',
      { ...at('o1'), name: 'n' },
      [reasoning(), { chars: 7 }, { call: 0, raw: { signature: CANARY } }],
    ],
  ])('%s', async (_, about, expected) => {
    await using bench = await AgentBench.start()
    const first = scriptedModel([thinking('c1'), { text: 'Done.' }], at('o1'))
    const core = await bench.core({ parts: { model: first } })
    const { id } = await newSession(core)
    await ask(await core.manager.get('u_ada', id), 'go')
    await core.leave()
    const second = scriptedModel([{ text: 'Hi.' }], about)
    const after = await bench.core({ parts: { model: second } })
    await ask(await after.manager.get('u_ada', id), 'and now?')
    expect(replayed(second)[0]).toEqual(expected)
    expect(second.requests[0]?.messages).toContainEqual(
      expect.objectContaining({
        role: 'assistant',
        content: 'I look.',
        calls: [expect.objectContaining({ name: 'echo' })],
      }),
    )
  })

  test('take no room by their bytes', async () => {
    await using bench = await AgentBench.start()
    const model = scriptedModel([thinking('c1', 200 * 1024), { text: 'Done.' }, { text: 'Hi.' }], {
      ...at('o1'),
      contextWindow: 8_000,
    })
    const session = await newSession(await bench.core({ parts: { model } }))
    await ask(session, 'go')
    await ask(session, 'and now?')
    expect(happened(session.log, 'compacted')).toEqual([])
  })
})

describe('a provider that refuses them', () => {
  test('is asked once more without, and not sent any again', async () => {
    await using bench = await AgentBench.start()
    const model = scriptedModel(
      [thinking('c1'), refused, thinking('c2'), { text: 'Done.' }, { text: 'Hi.' }],
      at('o1'),
    )
    const session = await newSession(await bench.core({ parts: { model } }))
    await ask(session, 'go')
    await ask(session, 'and now?')
    expect(model.requests).toHaveLength(5)
    expect(replayed(model).every((items) => items === undefined)).toBe(true)
    expect(happened(session.log, 'history_mended')).toMatchObject([{ origin: 'o1' }])
    expect(happened(session.log, 'prompt_ended').map(({ reason }) => reason)).toEqual([
      'completed',
      'completed',
    ])
  })

  test('also then ends the prompt with a cause that every version reads', async () => {
    await using bench = await AgentBench.start()
    const model = scriptedModel([thinking('c1'), refused, refused], at('o1'))
    const session = await newSession(await bench.core({ parts: { model } }))
    await ask(session, 'go')
    expect(happened(session.log, 'prompt_ended')).toMatchObject([
      { reason: 'error', cause: 'invalid_history' },
    ])
  })
})

test('a summary is asked for once more without them too', async () => {
  await using bench = await AgentBench.start()
  const model = scriptedModel([thinking('c1'), { text: 'Done.' }, refused, { text: 'They spoke.' }], at('o1'))
  const session = await newSession(await bench.core({ parts: { model } }))
  await ask(session, 'go')
  await ask(session, '/compact')
  expect(happened(session.log, 'compacted')).toMatchObject([
    { summary: expect.stringContaining('They spoke.') },
  ])
  expect(happened(session.log, 'history_mended')).toMatchObject([{ origin: 'o1' }])
  expect(model.requests).toHaveLength(4)
})

test('those that a summary replaced are not read again', async () => {
  await using bench = await AgentBench.start()
  const model = scriptedModel(
    [thinking('c1', 300 * 1024), { text: 'Done.' }, { text: 'They spoke.' }, { text: 'Hi.' }],
    at('o1'),
  )
  let reads = 0
  const core = await bench.core({
    parts: { model },
    wrap: (parts) => ({
      ...parts,
      store: {
        ...parts.store,
        outputs: {
          ...parts.store.outputs,
          read: (...args) => (reads++, parts.store.outputs.read(...args)),
        },
      },
    }),
  })
  const session = await newSession(core)
  await ask(session, 'go')
  await ask(session, '/compact')
  reads = 0
  await ask(session, 'and now?')
  expect(reads).toBe(0)
})

test('one that retention has removed in part is none', async () => {
  await using bench = await AgentBench.start()
  const model = scriptedModel([thinking('c1', 300 * 1024), { text: 'Done.' }, { text: 'Hi.' }], at('o1'))
  let cut = false
  const core = await bench.core({
    parts: { model },
    wrap: (parts) => ({
      ...parts,
      store: {
        ...parts.store,
        outputs: {
          ...parts.store.outputs,
          read: async (...args) => (await parts.store.outputs.read(...args)).slice(cut ? 1_000 : 0),
        },
      },
    }),
  })
  const session = await newSession(core)
  await ask(session, 'go')
  cut = true
  await ask(session, 'and now?')
  expect(replayed(model)[0]).toBeUndefined()
  expect(happened(session.log, 'prompt_ended').at(-1)).toMatchObject({ reason: 'completed' })
})

test('an answer’s items belong to the wire that it came over', async () => {
  await using bench = await AgentBench.start()
  const late = { ...at('o1'), wire: 'chat' }
  const model = scriptedModel(
    [{ text: 'Hi.', replay: [reasoning()], wire: 'responses' }, { text: 'Ho.' }],
    late,
  )
  const session = await newSession(await bench.core({ parts: { model } }))
  await ask(session, 'go')
  await ask(session, 'and now?')
  expect(model.requests.map(({ wire }) => wire)).toEqual(['chat', 'chat'])
  expect(replayed(model)[0]).toBeUndefined()
})

test.each([
  ['chat', [{ raw: { reasoning_content: 'Hm' } }]],
  ['responses', undefined],
])(
  'a log of before gives its provider what it stored, by the model’s name, over %s',
  async (wire, expected) => {
    await using bench = await AgentBench.start()
    const model = scriptedModel(
      [{ text: 'Done.', replay: [{ raw: { reasoning_content: 'Hm' } }] }, { text: 'Hi.' }],
      {
        name: 'm',
        wire,
      },
    )
    const core = await bench.core({
      parts: { model },
      wrap: (parts) => ({
        ...parts,
        store: {
          ...parts.store,
          log: {
            ...parts.store.log,
            append: (id, events, ...rest) => parts.store.log.append(id, events.map(asBefore), ...rest),
          },
        },
      }),
    })
    const session = await newSession(core)
    await ask(session, 'go')
    expect(session.log.map((event) => metaOf(event).forProvider)).toContainEqual({
      answer: { reasoning_content: 'Hm' },
    })
    await ask(session, 'and now?')
    expect(replayed(model)[0]).toEqual(expected)
  },
)

/** The event, stored by the version before. */
function asBefore(event: SessionEvent): SessionEvent {
  const answer = metaOf(event).forProvider?.replay?.items?.[0]?.raw
  if (answer === undefined) return event
  return { ...event, _meta: { ...event._meta, sandlot: { ...metaOf(event), forProvider: { answer } } } }
}
