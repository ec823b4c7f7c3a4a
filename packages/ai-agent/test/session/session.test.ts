import { metaOf } from '@sandlot/shared/chat/events'
import { emptyTranscript, foldTranscript } from '@sandlot/shared/transcript/transcript'
import { describe, expect, test } from 'vitest'
import type { CallParts } from '../../src/session/parts.ts'
import {
  AgentBench,
  ask,
  echoTool,
  happened,
  heldTool,
  newSession,
  outcomes,
  textsForModel,
  whenHappened,
  whenIdle,
} from '../support/agent-fixture.ts'
import { deltaChunk, sse, textAnswer, toolCalls } from '../support/fake-provider.ts'

const slowCall = (key: string) => ({ id: `call_${key}`, name: 'slow', args: { key } })

describe('a message while a prompt runs', () => {
  test('steer: joins behind the results of the round, before the next request', async () => {
    const slow = heldTool('slow', true)
    await using bench = await AgentBench.start([toolCalls([slowCall('a')]), textAnswer('ok')])
    const session = await newSession(await bench.core({ tools: [slow.tool] }))
    const first = await session.prompt('go')
    await slow.whenBegun(1)
    const second = await session.prompt('in blue, please')
    expect(happened(session.log, 'message_queued')).toMatchObject([{ text: 'in blue, please', as: 'steer' }])
    slow.release('a')
    expect((await second.done).promptId).toBe((await first.done).promptId)

    const messages = bench.provider.requests[1]?.body.messages ?? []
    expect(messages.slice(-2)).toMatchObject([
      { role: 'tool', tool_call_id: 'call_a' },
      { role: 'user', content: 'in blue, please' },
    ])
    const unqueued = session.log.findIndex((event) => metaOf(event).event?.type === 'message_unqueued')
    expect(session.log[unqueued + 1]).toMatchObject({ sessionUpdate: 'user_message_chunk' })
    expect(happened(session.log, 'prompt_started')).toHaveLength(1)
  })

  test('images wait like words: a steered and a queued message bring theirs, in order', async () => {
    const slow = heldTool('slow', true)
    await using bench = await AgentBench.start([
      toolCalls([slowCall('a')]),
      textAnswer('seen'),
      textAnswer('seen too'),
    ])
    const session = await newSession(await bench.core({ tools: [slow.tool] }))
    const first = await session.prompt('go')
    await slow.whenBegun(1)
    const image = (data: string) => ({ mimeType: 'image/png', data })
    await session.prompt('like this', { images: [image('AAAA'), image('BBBB')] })
    const queued = await session.prompt('(an image, without words)', {
      whenBusy: 'queue',
      images: [image('CCCC')],
    })
    expect(happened(session.log, 'message_queued')).toMatchObject([
      { as: 'steer', images: [image('AAAA'), image('BBBB')] },
      { as: 'queue', images: [image('CCCC')] },
    ])
    slow.release('a')
    await Promise.all([first.done, queued.done])
    const shown = (request: number) => JSON.stringify(bench.provider.requests[request]?.body.messages.at(-1))
    expect(shown(1)).toMatch(/like this.*base64,AAAA.*base64,BBBB/)
    expect(shown(2)).toMatch(/without words.*base64,CCCC/)
    const screen = session.log.reduce(foldTranscript, emptyTranscript())
    const said = screen.entries.filter((entry) => entry.type === 'message' && entry.role === 'user')
    expect(said).toMatchObject([
      { text: 'go' },
      { text: 'like this', images: [image('AAAA'), image('BBBB')] },
      { text: '', images: [image('CCCC')] },
    ])
  })

  test('steer during the final answer, and queue: they become the next prompts, in order', async () => {
    let go = (): void => undefined
    const gate = new Promise<void>((resolve) => (go = resolve))
    await using bench = await AgentBench.start([
      async () => {
        await gate
        return textAnswer('one')
      },
      textAnswer('two'),
      textAnswer('three'),
    ])
    const session = await newSession(await bench.core())
    const first = await session.prompt('1')
    await expect.poll(() => bench.provider.requests.length).toBe(1)
    const second = await session.prompt('2')
    const third = await session.prompt('3', { whenBusy: 'queue' })
    go()
    const ends = await Promise.all([first.done, second.done, third.done])
    expect(new Set(ends.map(({ promptId }) => promptId)).size).toBe(3)
    expect(ends.map(({ promptId }) => promptId)).toEqual(
      [first, second, third].map(({ promptId }) => promptId),
    )
    expect(bench.provider.requests.map(({ body }) => body.messages.at(-1)?.content)).toEqual(['1', '2', '3'])
    expect(session.running).toBe(false)
  })

  test('refuse: busy', async () => {
    await using bench = await AgentBench.start([{ steps: [], after: 'hang' }])
    const session = await newSession(await bench.core())
    const { done } = await session.prompt('go')
    await expect(session.prompt('more', { whenBusy: 'refuse' })).rejects.toMatchObject({ code: 'busy' })
    await session.cancel()
    await done
  })

  test('is kept over a Stop and goes with the next prompt', async () => {
    await using bench = await AgentBench.start([{ steps: [], after: 'hang' }, textAnswer('ok')])
    const session = await newSession(await bench.core())
    const first = await session.prompt('1')
    await expect.poll(() => bench.provider.requests.length).toBe(1)
    const second = await session.prompt('2', { whenBusy: 'queue' })
    await session.cancel()
    expect(await first.done).toMatchObject({ reason: 'cancelled' })
    expect(await second.done).toMatchObject({ reason: 'cancelled' })
    expect(session.running).toBe(false)
    await ask(session, '3')
    const asked = bench.provider.requests.at(-1)?.body.messages.filter(({ role }) => role === 'user')
    expect(asked?.map(({ content }) => content)).toEqual(['1', '2', '3'])
  })
})

describe('a message of somebody who is there', () => {
  test('is asked for approval although the prompt before it was unattended', async () => {
    const change = heldTool('change', false)
    let go = (): void => undefined
    const gate = new Promise<void>((resolve) => (go = resolve))
    await using bench = await AgentBench.start([
      async () => {
        await gate
        return textAnswer('one')
      },
      toolCalls([{ id: 'call_w', name: 'change', args: { key: 'w' } }]),
      textAnswer('two'),
    ])
    const session = await newSession(await bench.core({ tools: [change.tool] }), 'manual')
    await session.prompt('1', { unattended: true })
    const second = await session.prompt('2', { whenBusy: 'queue' })
    go()
    await whenHappened(session, 'approval_asked')
    await Promise.race([second.done, session.answer('call_w', 'reject_once')])
    await second.done
    expect(happened(session.log, 'approval_answered')).toMatchObject([{ by: 'user' }])
  })
})

describe('a request id', () => {
  test('is one prompt, however often it is sent, also to another session and after a restart', async () => {
    await using bench = await AgentBench.start([textAnswer('once')])
    const core = await bench.core()
    const session = await newSession(core)
    const options = { requestId: 'r1' }
    const twice = await Promise.all([session.prompt('go', options), session.prompt('go', options)])
    expect(twice.map(({ duplicate }) => duplicate)).toEqual([false, true])
    expect(twice[0].promptId).toBe(twice[1].promptId)
    await Promise.all(twice.map(({ done }) => done))

    const other = await newSession(core)
    const again = await core.manager.prompt('u_ada', other.id, 'go', options)
    expect(again).toMatchObject({ sessionId: session.id, promptId: twice[0].promptId, duplicate: true })
    await core.leave()

    const restarted = await bench.core()
    const late = await restarted.manager.prompt('u_ada', session.id, 'go', options)
    expect(late).toMatchObject({ promptId: twice[0].promptId, duplicate: true })
    expect(await late.done).toMatchObject({ reason: 'completed', promptId: twice[0].promptId })
    expect(bench.provider.requests).toHaveLength(1)
  })
})

describe('approvals', () => {
  const call = { id: 'call_w', name: 'change', args: { key: 'w' } }

  test('the first answer wins; allowed runs, and later ones hear so', async () => {
    const change = heldTool('change', false)
    await using bench = await AgentBench.start([toolCalls([call]), textAnswer('ok')])
    const session = await newSession(await bench.core({ tools: [change.tool] }), 'manual')
    const { done } = await session.prompt('go')
    await whenHappened(session, 'approval_asked')
    expect(session.summary().waiting).toBe(1)
    await expect(session.answer('call_w', 'perhaps')).rejects.toMatchObject({ code: 'bad_request' })
    await expect(session.answer('call_x', 'allow_once')).rejects.toMatchObject({ code: 'not_found' })
    const answers = await Promise.all([
      session.answer('call_w', 'allow_once'),
      session.answer('call_w', 'reject_once'),
    ])
    expect(answers).toEqual([
      { answered: true, by: 'user' },
      { answered: false, by: 'user' },
    ])
    await change.whenBegun(1)
    change.release('w')
    await done
    expect(outcomes(session.log)).toEqual({ call_w: ['completed'] })
    expect(session.summary().waiting).toBe(0)
  })

  test('denied: the model hears the reason', async () => {
    const change = heldTool('change', false)
    await using bench = await AgentBench.start([toolCalls([call]), textAnswer('ok')])
    const session = await newSession(await bench.core({ tools: [change.tool] }), 'manual')
    const { done } = await session.prompt('go')
    await whenHappened(session, 'approval_asked')
    await session.answer('call_w', 'reject_once', { reason: 'not on a Friday' })
    await done
    expect(outcomes(session.log)).toEqual({ call_w: ['failed denied'] })
    expect(bench.provider.requests[1]?.body.messages.at(-1)?.content).toContain('not on a Friday')
    expect(change.begun).toEqual([])
  })

  test('allowed for the session: the next one does not ask, also after a restart', async () => {
    const change = heldTool('change', false)
    for (const key of ['w', 'x', 'y']) change.release(key)
    const again = (key: string) => toolCalls([{ id: `call_${key}`, name: 'change', args: { key } }])
    await using bench = await AgentBench.start([
      again('w'),
      textAnswer('1'),
      again('x'),
      textAnswer('2'),
      again('y'),
      textAnswer('3'),
    ])
    const core = await bench.core({ tools: [change.tool] })
    const session = await newSession(core, 'manual')
    const { done } = await session.prompt('go')
    await whenHappened(session, 'approval_asked')
    await session.answer('call_w', 'allow_session')
    await done
    await ask(session, 'again')
    await core.leave()
    const restarted = await bench.core({ tools: [change.tool] })
    const loaded = await restarted.manager.get('u_ada', session.id)
    await ask(loaded, 'and again')
    expect(happened(loaded.log, 'approval_asked')).toHaveLength(1)
    expect(change.begun).toEqual(['w', 'x', 'y'])
  })

  test('expires as denied', async () => {
    const change = heldTool('change', false)
    await using bench = await AgentBench.start([toolCalls([call]), textAnswer('ok')])
    const session = await newSession(await bench.core({ tools: [change.tool], approvalTtlMs: 20 }), 'manual')
    await ask(session, 'go')
    expect(happened(session.log, 'approval_answered')).toMatchObject([{ allowed: false, by: 'expiry' }])
    expect(outcomes(session.log)).toEqual({ call_w: ['failed denied'] })
    expect(await session.answer('call_w', 'allow_once')).toEqual({ answered: false, by: 'expiry' })
  })

  test('unattended: denied at once', async () => {
    const change = heldTool('change', false)
    await using bench = await AgentBench.start([toolCalls([call]), textAnswer('ok')])
    const session = await newSession(await bench.core({ tools: [change.tool] }), 'manual')
    const { done } = await session.prompt('go', { unattended: true })
    await done
    expect(happened(session.log, 'approval_answered')).toMatchObject([{ allowed: false, by: 'unattended' }])
    expect(outcomes(session.log)).toEqual({ call_w: ['failed denied'] })
  })

  test('an approval that waits and the end of a prompt each write a notice, unless it is unattended', async () => {
    const change = heldTool('change', false)
    await using bench = await AgentBench.start([
      toolCalls([call]),
      textAnswer('ok'),
      toolCalls([{ ...call, id: 'call_x' }]),
      textAnswer('ok'),
    ])
    const core = await bench.core({ tools: [change.tool] })
    const session = await newSession(core, 'manual')
    const first = await session.prompt('go')
    await whenHappened(session, 'approval_asked')
    await session.answer('call_w', 'reject_once')
    await first.done
    const told = await core.store.notifications.after(0, 10)
    expect(told).toMatchObject([
      { userId: 'u_ada', kind: 'approval', sessionId: session.id, ref: 'call_w', about: 'change' },
      { userId: 'u_ada', kind: 'ended', sessionId: session.id, ref: first.promptId },
    ])
    // A program waits beside such a prompt, or nobody does.
    await (
      await session.prompt('go', { unattended: true })
    ).done
    expect(await core.store.notifications.after(0, 10)).toHaveLength(2)
  })

  test('a Stop answers what waits, and the call ends cancelled', async () => {
    const change = heldTool('change', false)
    await using bench = await AgentBench.start([toolCalls([call])])
    const session = await newSession(await bench.core({ tools: [change.tool] }), 'manual')
    const { done } = await session.prompt('go')
    await whenHappened(session, 'approval_asked')
    await session.cancel()
    await done
    expect(happened(session.log, 'approval_answered')).toMatchObject([{ allowed: false, by: 'cancel' }])
    expect(outcomes(session.log)).toEqual({ call_w: ['failed cancelled'] })
    expect(session.pendingApprovals()).toEqual([])
    expect(textsForModel(session.log)).toEqual({
      call_w: expect.stringMatching(/was not started.*no effect/),
    })
  })

  test('what waited over a restart and was ended then was not started', async () => {
    const change = heldTool('change', false)
    await using bench = await AgentBench.start([toolCalls([call])])
    const core = await bench.core({ tools: [change.tool] })
    const session = await newSession(core, 'manual')
    await session.prompt('go')
    await whenHappened(session, 'approval_asked')
    await core.leave()

    const restarted = await bench.core({ tools: [change.tool] })
    await restarted.manager.resumeUnfinished()
    const loaded = await restarted.manager.get('u_ada', session.id)
    await restarted.manager.interruptAll()
    expect(outcomes(loaded.log)).toEqual({ call_w: ['failed interrupted'] })
    expect(textsForModel(loaded.log)).toEqual({ call_w: expect.stringMatching(/was not started.*no effect/) })
    expect(change.begun).toEqual([])
  })

  test('waits over a restart, is asked once, and runs once', async () => {
    const change = heldTool('change', false)
    change.release('w')
    await using bench = await AgentBench.start([toolCalls([call]), textAnswer('ok')])
    const core = await bench.core({ tools: [change.tool] })
    const session = await newSession(core, 'manual')
    await session.prompt('go')
    await whenHappened(session, 'approval_asked')
    await core.leave()

    const restarted = await bench.core({ tools: [change.tool] })
    expect(await restarted.manager.resumeUnfinished()).toBe(1)
    const loaded = await restarted.manager.get('u_ada', session.id)
    expect(loaded.pendingApprovals().map(({ toolCallId }) => toolCallId)).toEqual(['call_w'])
    expect(loaded.summary()).toMatchObject({ running: true, waiting: 1 })
    expect(await loaded.answer('call_w', 'allow_once')).toEqual({ answered: true, by: 'user' })
    await whenIdle(loaded)
    expect(happened(loaded.log, 'approval_asked')).toHaveLength(1)
    // It only waited: that is not one of the few times that a prompt is taken up before it is given up.
    expect(happened(loaded.log, 'prompt_resumed')).toEqual([])
    expect(change.begun).toEqual(['w'])
    expect(outcomes(loaded.log)).toEqual({ call_w: ['completed'] })
    expect(happened(loaded.log, 'prompt_ended')).toMatchObject([{ reason: 'completed' }])
  })
})

describe('modes', () => {
  test('a change is an event and a row; the ceiling holds', async () => {
    await using bench = await AgentBench.start()
    const core = await bench.core()
    const session = await newSession(core, 'manual')
    await session.setMode('auto-edit', 'auto-edit')
    await expect(session.setMode('yolo', 'auto-edit')).rejects.toMatchObject({ code: 'forbidden' })
    expect(session.log).toMatchObject([{ sessionUpdate: 'current_mode_update', currentModeId: 'auto-edit' }])
    expect(await core.store.sessions.get(session.id)).toMatchObject({ mode: 'auto-edit' })
  })

  test('a ceiling that came later holds for the next prompt', async () => {
    const change = heldTool('change', false)
    await using bench = await AgentBench.start([
      toolCalls([{ id: 'c', name: 'change', args: { key: 'w' } }]),
      textAnswer('ok'),
    ])
    const session = await newSession(await bench.core({ tools: [change.tool] }), 'yolo')
    const { done } = await session.prompt('go', { modeCeiling: 'manual', unattended: true })
    await done
    expect(outcomes(session.log)).toEqual({ c: ['failed denied'] })
  })
})

describe('the manager', () => {
  test('another user’s session is not found; one’s own is listed, changed and deleted', async () => {
    await using bench = await AgentBench.start([textAnswer('ok'), { steps: [], after: 'hang' }])
    const core = await bench.core()
    const left = new AbortController()
    const changes = core.manager.shares.changes(left.signal)
    const session = await newSession(core)
    await expect(core.manager.get('u_bob', session.id)).rejects.toMatchObject({ code: 'not_found' })
    await expect(core.manager.prompt('u_bob', session.id, 'hi', {})).rejects.toMatchObject({
      code: 'not_found',
    })
    await core.manager.removal.delete('u_bob', session.id)
    await expect(
      core.manager.create({ userId: 'u_bob', cwd: '/workspace', mode: 'yolo', sessionId: session.id }),
    ).rejects.toMatchObject({ code: 'conflict' })

    await ask(session, 'hello')
    expect((await core.manager.list('u_ada')).map(({ id, title }) => ({ id, title }))).toEqual([
      { id: session.id, title: 'Hello' },
    ])
    expect(await core.manager.list('u_bob')).toEqual([])

    const { done } = await session.prompt('more')
    const reader = session.subscribe(0)
    await core.manager.removal.delete('u_ada', session.id)
    expect(await done).toMatchObject({ reason: 'cancelled' })
    await expect(Array.fromAsync(reader.live)).rejects.toMatchObject({ reason: 'deleted' })
    await expect(session.prompt('more')).rejects.toMatchObject({ code: 'not_found' })
    await expect(core.manager.get('u_ada', session.id)).rejects.toMatchObject({ code: 'not_found' })
    left.abort()
    const seen = await Array.fromAsync(changes)
    expect(seen.at(-1)).toMatchObject({ userId: 'u_ada', summary: { deleted: true, title: 'Hello' } })
  })

  test('a session is deleted although a message waited when its prompt ended', async () => {
    const slow = heldTool('slow', true)
    await using bench = await AgentBench.start([
      toolCalls([slowCall('a')]),
      textAnswer('one'),
      toolCalls([slowCall('b')]),
    ])
    const core = await bench.core({ tools: [slow.tool] })
    const session = await newSession(core)
    const ending = Promise.withResolvers<void>()
    const go = Promise.withResolvers<void>()
    const { append } = core.store.log
    core.store.log.append = async (id, events, effects) => {
      if (events.some((event) => metaOf(event).event?.type === 'prompt_ended')) {
        ending.resolve()
        await go.promise
      }
      return append(id, events, effects)
    }
    await session.prompt('1')
    await slow.whenBegun(1)
    const second = await session.prompt('2', { whenBusy: 'queue' })
    slow.release('a')
    await ending.promise
    // The first prompt's end is being stored, and with it the beginning of the next: both are meant.
    const deleted = core.manager.removal.delete('u_ada', session.id)
    go.resolve()
    await deleted
    expect(await second.done).toMatchObject({ reason: 'cancelled' })
    await expect(core.manager.get('u_ada', session.id)).rejects.toMatchObject({ code: 'not_found' })
  })

  test('interruptAll ends prompts with that reason and keeps nothing running', async () => {
    const slow = heldTool('slow', true)
    await using bench = await AgentBench.start([toolCalls([slowCall('a')])])
    const core = await bench.core({ tools: [slow.tool] })
    const session = await newSession(core)
    const { done } = await session.prompt('go')
    await slow.whenBegun(1)
    await core.manager.interruptAll()
    expect(await done).toMatchObject({ stopReason: 'cancelled', reason: 'interrupted' })
    expect(outcomes(session.log)).toEqual({ call_a: ['failed interrupted'] })
  })

  test('a Stop is not forgotten when the process leaves before the prompt has ended', async () => {
    const slow = heldTool('slow', true)
    await using bench = await AgentBench.start([toolCalls([slowCall('a')]), textAnswer('went on')])
    const core = await bench.core({ tools: [slow.tool] })
    const session = await newSession(core)
    await session.prompt('go')
    await slow.whenBegun(1)
    // The process dies before the outcome is stored.
    const { append } = core.store.log
    const dead = Promise.withResolvers<never>()
    dead.promise.catch(() => undefined)
    core.store.log.append = async (id, events, effects) =>
      effects?.outcome === undefined ? append(id, events, effects) : dead.promise
    await session.cancel()
    const log = await core.store.log.read(session.id)
    expect(happened(log, 'stop_asked')).toHaveLength(1)
    expect(happened(log, 'prompt_ended')).toEqual([])
    const left = core.leave()
    dead.reject(new Error('the process is gone'))
    await left

    const restarted = await bench.core({ tools: [slow.tool] })
    expect(await restarted.manager.resumeUnfinished()).toBe(1)
    const loaded = await restarted.manager.get('u_ada', session.id)
    await whenIdle(loaded)
    expect(outcomes(loaded.log)).toEqual({ call_a: ['failed cancelled'] })
    expect(happened(loaded.log, 'prompt_ended')).toMatchObject([{ reason: 'cancelled' }])
    expect(bench.provider.requests).toHaveLength(1)
    expect(slow.begun).toEqual(['a'])
  })

  describe('what an earlier process left is ended without another step', () => {
    const call = { id: 'call_w', name: 'change', args: { key: 'w' } }

    test('a request to the model that was waiting', async () => {
      await using bench = await AgentBench.start([
        { steps: [], after: 'hang' },
        textAnswer('never asked for'),
      ])
      const core = await bench.core()
      const session = await newSession(core)
      await session.prompt('go')
      await expect.poll(() => bench.provider.requests).toHaveLength(1)
      await core.leave()

      const ending = await bench.core()
      expect(await ending.manager.endUnfinished()).toBe(1)
      const loaded = await ending.manager.get('u_ada', session.id)
      await whenIdle(loaded)
      expect(happened(loaded.log, 'prompt_ended')).toMatchObject([{ reason: 'interrupted' }])
      expect(bench.provider.requests).toHaveLength(1)
    })

    test('a call that was allowed and had not begun, and one that waits for its approval', async () => {
      const change = heldTool('change', false)
      change.release('w')
      await using bench = await AgentBench.start([
        toolCalls([call, { ...call, id: 'call_x', args: { key: 'x' } }]),
        textAnswer('never asked for'),
      ])
      const core = await bench.core({ tools: [change.tool] })
      const session = await newSession(core, 'manual')
      await session.prompt('go')
      await expect.poll(() => session.pendingApprovals()).toHaveLength(2)
      await core.leave()

      // Answered, and the process has died before it went on.
      const stuck: CallParts['tools'] = (_user, signal) =>
        new Promise((_resolve, reject) => signal.addEventListener('abort', reject))
      const answering = await bench.core({ parts: { tools: stuck } })
      const held = await answering.manager.get('u_ada', session.id)
      await held.answer('call_w', 'allow_once')
      await answering.leave()

      const ending = await bench.core({ tools: [change.tool] })
      expect(await ending.manager.endUnfinished()).toBe(1)
      const loaded = await ending.manager.get('u_ada', session.id)
      await whenIdle(loaded)
      expect(outcomes(loaded.log)).toEqual({ call_w: ['failed interrupted'], call_x: ['failed interrupted'] })
      expect(happened(loaded.log, 'prompt_ended')).toMatchObject([{ reason: 'interrupted' }])
      expect(change.begun).toEqual([])
      expect(bench.provider.requests).toHaveLength(1)
    })
  })

  test('a prompt that a process left is taken up: finished calls are not run again, the cut text is withdrawn', async () => {
    const slow = heldTool('slow', true)
    slow.release('b')
    await using bench = await AgentBench.start([
      toolCalls([slowCall('a'), slowCall('b')]),
      { steps: [sse(deltaChunk({ content: 'Half' }))], after: 'hang' },
      textAnswer('Whole.'),
    ])
    const core = await bench.core({ tools: [slow.tool, echoTool()] })
    const session = await newSession(core)
    await session.prompt('go')
    await slow.whenBegun(2)
    await expect.poll(() => outcomes(session.log)['call_b']).toBeDefined()
    await core.leave()
    expect(outcomes(session.log)).toEqual({ call_b: ['completed'] })

    const second = await bench.core({ tools: [slow.tool, echoTool()] })
    await second.manager.resumeUnfinished()
    const loaded = await second.manager.get('u_ada', session.id)
    await slow.whenBegun(3)
    expect(slow.begun).toEqual(['a', 'b', 'a'])
    slow.release('a')
    const subscription = loaded.subscribe(0)
    let shown = ''
    for await (const event of subscription.live) {
      if (event.sessionUpdate !== 'agent_message_chunk') continue
      shown = event.messageId
      break
    }
    await second.leave()

    const third = await bench.core({ tools: [slow.tool, echoTool()] })
    await third.manager.resumeUnfinished()
    const last = await third.manager.get('u_ada', session.id)
    await whenIdle(last)
    expect(happened(last.log, 'message_withdrawn').map(({ messageId }) => messageId)).toContain(shown)
    expect(outcomes(last.log)).toEqual({ call_a: ['completed'], call_b: ['completed'] })
    expect(happened(last.log, 'prompt_ended')).toMatchObject([{ reason: 'completed' }])
    expect(bench.provider.requests[2]?.raw).toBe(bench.provider.requests[1]?.raw)
  })
})
