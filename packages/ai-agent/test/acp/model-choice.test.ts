/** A session chooses its model and how hard it thinks: over ACP, in the log, and from the next prompt on. */
import { methods } from '@agentclientprotocol/sdk'
import { type SessionEvent, makeSandlotEvent } from '@sandlot/shared/chat/events'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { choose, chosenIn, modelOfPrompt } from '../../src/loop/model-choice.ts'
import { ContextWindow } from '../../src/model/context-window.ts'
import type { Model } from '../../src/model/model.ts'
import { createHttpModel } from '../../src/model/http-model.ts'
import type { Models } from '../../src/loop/model-choice.ts'
import { promptStarted } from '../../src/history/session-messages.ts'
import {
  AgentBench,
  ask,
  happened,
  newSession as plainSession,
  whenEvent,
  whenHappened,
  whenIdle,
} from '../support/agent-fixture.ts'
import { deltaChunk, sse, textAnswer } from '../support/fake-provider.ts'
import { ADA, by, connect, newSession, text } from './test-client.ts'

const LEVELS = ['low', 'medium', 'high']
const DOT = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

function models(bench: AgentBench): Required<Models> {
  const create = (model: string, more: object = {}): Model =>
    createHttpModel({ baseUrl: bench.provider.baseUrl, apiKey: '', model, ...more })
  const small = create('small', { price: { input: 1, output: 1_000_000 }, profile: { images: false } })
  return {
    model: create('main'),
    choices: [create('thinker', { profile: { thoughtLevels: LEVELS } }), small],
    fallbacks: [small],
  }
}

const asked = (bench: AgentBench) =>
  bench.provider.requests.map(({ body }) => [body.model, body['reasoning_effort']])

describe('a client', () => {
  test('sees what there is, chooses, is told, and the next prompt asks that model; a running one goes on as it began', async () => {
    const hanging = {
      steps: [
        sse(deltaChunk({ content: 'So far' })),
        { delayMs: 150 },
        sse(deltaChunk({ content: '.' }, 'stop')),
      ],
    }
    await using bench = await AgentBench.start([hanging, textAnswer('two'), textAnswer('three')])
    const core = await bench.core({ parts: models(bench) })
    await using one = await connect(core, { capabilities: {} })
    const made = await one.request(methods.agent.session.new, { cwd: '/workspace', mcpServers: [] })
    const sessionId = String(made['sessionId'])
    const option = (id: string, from: unknown) =>
      (from as { id: string }[]).find((candidate) => candidate.id === id)
    expect(option('model', made['configOptions'])).toMatchObject({
      category: 'model',
      currentValue: 'main',
      options: [{ value: 'main' }, { value: 'thinker' }, { value: 'small' }],
    })
    expect(option('thought_level', made['configOptions'])).toBeUndefined()

    const set = async (configId: string, value: string): Promise<unknown> =>
      (await one.request(methods.agent.session.setConfigOption, { sessionId, configId, value }))[
        'configOptions'
      ]
    const prompt = () => one.request(methods.agent.session.prompt, { sessionId, prompt: text('hi') })
    const session = await core.manager.get('local', sessionId)
    const first = prompt()
    await whenEvent(session, ({ sessionUpdate }) => sessionUpdate === 'agent_message_chunk')
    expect(option('thought_level', await set('model', 'thinker'))).toMatchObject({
      category: 'thought_level',
      currentValue: 'default',
      options: [{ value: 'default' }, ...LEVELS.map((value) => ({ value }))],
    })
    await first
    expect(option('thought_level', await set('thought_level', 'high'))).toMatchObject({
      currentValue: 'high',
    })
    await prompt()
    // A level goes with the model that has it.
    expect(option('thought_level', await set('model', 'small'))).toBeUndefined()
    await prompt()
    expect(asked(bench)).toEqual([
      ['main', undefined],
      ['thinker', 'high'],
      ['small', undefined],
    ])
    const told = one.updates.flatMap(({ update }) =>
      update.sessionUpdate === 'config_option_update' ? [update.configOptions[1]?.currentValue] : [],
    )
    expect(told).toEqual(['thinker', 'thinker', 'small'])
    // Its cost is that of the model that answered; the whole session’s is unknown.
    expect(session.log.findLast(({ sessionUpdate }) => sessionUpdate === 'usage_update')).toMatchObject({
      _meta: { sandlot: { model: 'small', cost: expect.any(Number) } },
    })
  })

  test('that names what is not there gets a typed error that says what is', async () => {
    await using bench = await AgentBench.start()
    const core = await bench.core({ parts: models(bench) })
    await using one = await connect(core)
    const sessionId = await newSession(one)
    const set = (configId: string, value: unknown) =>
      one.request(methods.agent.session.setConfigOption, { sessionId, configId, value, ...by(ADA) })
    const wrong = (words: string) => ({
      code: -32_602,
      message: expect.stringContaining(words),
      data: { code: 'bad_request' },
    })
    await expect(set('model', 'gpt-9')).rejects.toMatchObject(wrong('main, thinker, small'))
    await expect(set('thought_level', 'high')).rejects.toMatchObject(
      wrong('main has no thought level “high”'),
    )
    await expect(set('colour', 'blue')).rejects.toMatchObject(wrong('no option “colour”'))
    await set('model', 'thinker')
    await expect(set('thought_level', 'utmost')).rejects.toMatchObject(wrong('low, medium, high'))
    await expect(newSession(one, by(ADA, { model: 'gpt-9', sessionId: 'made' }))).rejects.toMatchObject(
      wrong('gpt-9'),
    )
    await expect(core.manager.get('u_ada', 'made')).rejects.toMatchObject({ code: 'not_found' })
    const chosen = await newSession(one, by(ADA, { model: 'thinker', thoughtLevel: 'low' }))
    expect((await core.manager.get('u_ada', chosen)).models.chosen).toEqual({
      model: 'thinker',
      thoughtLevel: 'low',
    })
  })

  test('has chosen its model as soon as there is a session, whatever comes right behind', async () => {
    await using bench = await AgentBench.start()
    const leaving = new AbortController()
    const dying = await bench.core({
      parts: { ...models(bench), leaving: leaving.signal },
      wrap: (parts) => ({
        ...parts,
        store: {
          ...parts.store,
          sessions: {
            ...parts.store.sessions,
            create: async (...row) => {
              const made = await parts.store.sessions.create(...row)
              // From here on nothing is stored.
              leaving.abort()
              return made
            },
          },
        },
      }),
    })
    const model = { model: 'thinker', thoughtLevel: 'low' }
    const about = { userId: 'u_ada', cwd: '/workspace', mode: 'yolo', sessionId: 's_kept', ...model } as const
    await Promise.allSettled([dying.manager.create(about)])
    await dying.leave()
    const next = await bench.core({ parts: models(bench) })
    expect((await next.manager.get('u_ada', 's_kept')).models.chosen).toEqual(model)
  })

  test('cannot send an image into a prompt whose model takes none, whatever the next one asks; behind it, it can', async () => {
    const open = Promise.withResolvers<void>()
    const held = async () => {
      await open.promise
      return textAnswer('One.')
    }
    await using bench = await AgentBench.start([held, textAnswer('Two.')])
    const core = await bench.core({ parts: models(bench) })
    await using one = await connect(core)
    const sessionId = await newSession(one, by(ADA, { model: 'small' }))
    const first = one.request(methods.agent.session.prompt, { sessionId, prompt: text('hi'), ...by(ADA) })
    await expect.poll(() => bench.provider.requests.length).toBe(1)
    const session = await core.manager.get('u_ada', sessionId)
    await session.chooseModel({ model: 'main' })
    const prompt = [...text('See?'), { type: 'image', mimeType: 'image/png', data: DOT }]
    const send = (whenBusy: string) =>
      one.request(methods.agent.session.prompt, { sessionId, prompt, ...by(ADA, { whenBusy }) })
    await expect(send('steer')).rejects.toMatchObject({
      message: expect.stringContaining('small takes no images, and it is still answering'),
    })
    const second = send('queue')
    await whenHappened(session, 'message_queued')
    open.resolve()
    await Promise.all([first, second])
    expect(bench.provider.requests[1]?.body.model).toBe('main')
    expect(JSON.stringify(bench.provider.requests[1]?.body)).toContain(DOT)
  })

  test('cannot send images to a model that takes none, and can to another', async () => {
    await using bench = await AgentBench.start([textAnswer('A dot.')])
    const core = await bench.core({ parts: models(bench) })
    await using one = await connect(core)
    const sessionId = await newSession(one, by(ADA, { model: 'small' }))
    const prompt = [...text('See?'), { type: 'image', mimeType: 'image/png', data: DOT }]
    const send = () => one.request(methods.agent.session.prompt, { sessionId, prompt, ...by(ADA) })
    await expect(send()).rejects.toMatchObject({ message: expect.stringContaining('small takes no images') })
    await one.request(methods.agent.session.setConfigOption, {
      sessionId,
      configId: 'model',
      value: 'main',
      ...by(ADA),
    })
    await send()
    expect(JSON.stringify(bench.provider.requests[0]?.body)).toContain(DOT)
  })
})

describe('what was chosen', () => {
  test('holds over a restart, and is what a prompt taken up goes on with', async () => {
    const cut = { steps: [sse(deltaChunk({ content: 'So f' }))], after: 'hang' as const }
    await using bench = await AgentBench.start([cut, textAnswer('one'), textAnswer('two')])
    const first = await bench.core({ parts: models(bench) })
    const { id } = await plainSession(first)
    const before = await first.manager.get('u_ada', id)
    await before.chooseModel({ model: 'thinker', thoughtLevel: 'low' })
    await before.prompt('go')
    await whenEvent(before, ({ sessionUpdate }) => sessionUpdate === 'agent_message_chunk')
    await before.chooseModel({ model: 'main' })
    await first.leave()

    const second = await bench.core({ parts: models(bench) })
    await second.manager.resumeUnfinished()
    const session = await second.manager.get('u_ada', id)
    await whenIdle(session)
    expect(session.models.chosen).toEqual({ model: 'main' })
    await ask(session, 'more')
    expect(asked(bench)).toEqual([
      ['thinker', 'low'],
      ['thinker', 'low'],
      ['main', undefined],
    ])
  })

  test('has the fallbacks that everybody has; one that the configuration has not any more is not asked', async () => {
    const busy = { status: 529, steps: ['{"error":{"message":"overloaded"}}'] }
    await using bench = await AgentBench.start([
      busy,
      busy,
      busy,
      busy,
      textAnswer('small here'),
      textAnswer('main here'),
    ])
    const first = await bench.core({ parts: models(bench) })
    const { id } = await plainSession(first)
    const session = await first.manager.get('u_ada', id)
    await session.chooseModel({ model: 'thinker', thoughtLevel: 'high' })
    await ask(session, 'go')
    expect(happened(session.log, 'model_changed')).toMatchObject([{ model: 'small', why: 'overloaded' }])
    await first.leave()
    const { choices: _gone, ...others } = models(bench)
    const second = await bench.core({ parts: others })
    const again = await second.manager.get('u_ada', id)
    expect(again.models.chosen).toEqual({ model: 'main' })
    await ask(again, 'go')
    expect(asked(bench).slice(-2)).toEqual([
      ['small', undefined],
      ['main', undefined],
    ])
  })
})

test('property: whatever was chosen, the next prompt has a model and a level that there are, and the last choice wins', () => {
  const model = (name: string, thoughtLevels: readonly string[]): Model => ({
    name,
    demo: false,
    window: new ContextWindow({ set: 1_000 }),
    thoughtLevels,
    atLevel: (level) => model(`${name} ${level}`, thoughtLevels),
    stream: () => {
      throw new Error('nobody asks')
    },
  })
  const all = { model: model('a', []), choices: [model('b', LEVELS), model('c', ['low'])] }
  const change = fc.record({
    model: fc.option(fc.constantFrom('a', 'b', 'c', 'gone'), { nil: undefined }),
    thoughtLevel: fc.option(fc.constantFrom(...LEVELS, 'odd', null), { nil: undefined }),
  })
  fc.assert(
    fc.property(fc.array(change, { maxLength: 8 }), (changes) => {
      const log: SessionEvent[] = []
      let chosen = chosenIn(log, all)
      for (const one of changes) {
        try {
          chosen = choose(chosen, one, all)
        } catch {
          continue
        }
        log.push(makeSandlotEvent({ type: 'model_chosen', ...chosen }, {}, 1))
        expect(chosenIn(log, all)).toEqual(chosen)
      }
      const found = [all.model, ...all.choices].find(({ name }) => name === chosen.model)
      expect(found).toBeDefined()
      if (chosen.thoughtLevel !== undefined) expect(found?.thoughtLevels).toContain(chosen.thoughtLevel)
      log.push(promptStarted('m_1', chosen, 1))
      const told = chosen.thoughtLevel === undefined ? chosen.model : `${chosen.model} ${chosen.thoughtLevel}`
      expect(modelOfPrompt(log, 'p_1', all).name).toBe(told)
    }),
  )
})
