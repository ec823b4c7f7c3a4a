import {
  PROTOCOL_VERSION,
  type RequestPermissionRequest,
  type RequestPermissionResponse,
  methods,
} from '@agentclientprotocol/sdk'
import { EXT, approveResult, promptAccepted, sessionChanged } from '@sandlot/shared/acp/meta'
import { type SessionEvent, metaOf } from '@sandlot/shared/chat/events'
import { pendingApprovalList } from '@sandlot/shared/chat/pending-approvals'
import { describe, expect, test } from 'vitest'
import { AgentBench, heldTool, whenIdle } from '../support/agent-fixture.ts'
import { type FakeAnswer, deltaChunk, sse, textAnswer, toolCalls } from '../support/fake-provider.ts'
import { ADA, BOB, type TestClient, by, connect, newSession, said, text } from './test-client.ts'

/** A PNG of one pixel. */
const DOT = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

describe('our own client', () => {
  test('a fork: a new session of one’s own, which both tabs hear of', async () => {
    await using bench = await AgentBench.start([textAnswer('one')])
    const core = await bench.core()
    await using one = await connect(core)
    const sessionId = await newSession(one)
    await one.request(methods.agent.session.prompt, { sessionId, prompt: text('hi'), ...by(ADA) })
    const log = (await core.manager.get('u_ada', sessionId)).log
    const promptId = log.map((event) => metaOf(event).promptId).find((id) => id !== undefined)
    const made = await one.request(EXT.fork, { sessionId, promptId, user: ADA })
    expect(made['sessionId']).not.toBe(sessionId)
    const fork = await core.manager.get('u_ada', String(made['sessionId']))
    expect(fork.log).toHaveLength(log.length)
    await expect(one.request(EXT.fork, { sessionId, promptId, user: BOB })).rejects.toMatchObject({
      data: { code: 'not_found' },
    })
    await expect(one.request(EXT.fork, { sessionId, user: ADA })).rejects.toMatchObject({
      data: { code: 'bad_request' },
    })
    await expect
      .poll(() => one.others.filter(({ method }) => method === EXT.sessionChanged))
      .toContainEqual(
        expect.objectContaining({
          params: expect.objectContaining({ summary: expect.objectContaining({ sessionId: fork.id }) }),
        }),
      )
  })

  test('only a connection that asked for them is told of changes in session lists, one’s own or another’s', async () => {
    await using bench = await AgentBench.start([textAnswer('one')])
    const core = await bench.core()
    await using all = await connect(core)
    await using reader = await connect(core, { capabilities: { sandlot: { version: 1 } } })
    const sessionId = await newSession(reader)
    await reader.request(methods.agent.session.prompt, {
      sessionId,
      prompt: text('secret plans'),
      ...by(ADA),
    })
    await expect
      .poll(() => JSON.stringify(all.others.filter(({ method }) => method === EXT.sessionChanged)))
      .toContain('Secret plans')
    expect(reader.others.filter(({ method }) => method === EXT.sessionChanged)).toEqual([])
  })

  test('a session is renamed by its person: the name holds over later messages, and both tabs hear of it', async () => {
    await using bench = await AgentBench.start([textAnswer('one'), textAnswer('two')])
    const core = await bench.core()
    await using one = await connect(core)
    const sessionId = await newSession(one)
    const say = (words: string) =>
      one.request(methods.agent.session.prompt, { sessionId, prompt: text(words), ...by(ADA) })
    await say('what is in my workspace?')
    const rename = (title: string, user = ADA) => one.request(EXT.rename, { sessionId, title, user })
    await rename('Plans for May')
    await say('and now?')
    const session = await core.manager.get('u_ada', sessionId)
    expect(session.summary().title).toBe('Plans for May')
    await expect(rename('Mine', BOB)).rejects.toMatchObject({ data: { code: 'not_found' } })
    await expect(rename(' ')).rejects.toMatchObject({ data: { code: 'bad_request' } })
    expect(one.others).toContainEqual(
      expect.objectContaining({
        method: EXT.sessionChanged,
        params: expect.objectContaining({ summary: expect.objectContaining({ title: 'Plans for May' }) }),
      }),
    )
    // The next start has it too.
    expect((await core.store.sessions.get(sessionId))?.title).toBe('Plans for May')
  })

  test('a message that waits is taken back by its person, and its `session/prompt` is answered', async () => {
    const slow = heldTool('slow', true)
    await using bench = await AgentBench.start([
      toolCalls([{ id: 'a', name: 'slow', args: { key: 'k' } }]),
      textAnswer('ok'),
    ])
    const core = await bench.core({ tools: [slow.tool] })
    await using one = await connect(core)
    await using other = await connect(core)
    const sessionId = await newSession(one)
    const prompt = (words: string) =>
      one.request(methods.agent.session.prompt, { sessionId, prompt: text(words), ...by(ADA) })
    const running = prompt('go')
    await slow.whenBegun(1)
    const waiting = prompt('never mind')
    const { log } = await core.manager.get('u_ada', sessionId)
    const queued = () =>
      log.map((event) => metaOf(event).event).find((event) => event?.type === 'message_queued')
    await expect.poll(queued).toBeDefined()
    const messageId = queued()?.messageId
    const unqueue = (more: object) => other.request(EXT.unqueue, { sessionId, messageId, user: ADA, ...more })
    await expect(unqueue({ user: BOB })).rejects.toMatchObject({ data: { code: 'not_found' } })
    await expect(unqueue({ messageId: '' })).rejects.toMatchObject({ data: { code: 'bad_request' } })
    await expect(unqueue({ messageId: 'm_none' })).rejects.toMatchObject({ data: { code: 'not_found' } })
    expect(await unqueue({})).toEqual({ why: 'withdrawn' })
    expect(await waiting).toMatchObject({
      stopReason: 'cancelled',
      _meta: { sandlot: { reason: 'cancelled' } },
    })
    slow.release('k')
    expect(await running).toMatchObject({ stopReason: 'end_turn' })
    expect(said(one, sessionId)).not.toContain('never mind')
  })

  test('initialize tells what we can', async () => {
    await using bench = await AgentBench.start()
    await using one = await connect(await bench.core())
    const answer = await one.request(methods.agent.initialize, {
      protocolVersion: 99,
      clientCapabilities: {},
    })
    expect(answer).toMatchObject({
      protocolVersion: PROTOCOL_VERSION,
      authMethods: [],
      agentCapabilities: {
        loadSession: true,
        sessionCapabilities: { list: {}, close: {}, delete: {} },
        _meta: { sandlot: { version: 1 } },
      },
    })
  })

  test('images: refused in words where the model takes none; else kept in the log, at most ten real ones', async () => {
    await using bench = await AgentBench.start([textAnswer('A dot.'), textAnswer('Still.')])
    const core = await bench.core()
    const image = (data = DOT) => ({ type: 'image', mimeType: 'image/jpeg', data })
    await using blind = await connect(core, { takesImages: false })
    const version = { protocolVersion: PROTOCOL_VERSION, clientCapabilities: {} }
    expect(await blind.request(methods.agent.initialize, version)).toMatchObject({
      agentCapabilities: { promptCapabilities: { image: false } },
    })
    await using one = await connect(core)
    const sessionId = await newSession(one)
    const send = (client: TestClient, ...prompt: object[]) =>
      client.request(methods.agent.session.prompt, { sessionId, prompt, ...by(ADA) })
    const refused = (words: string) => ({ code: -32_602, message: expect.stringContaining(words) })
    await expect(send(blind, ...text('See?'), image())).rejects.toMatchObject(refused('takes no images'))
    await expect(send(one, image('aGVsbG8='))).rejects.toMatchObject(refused('image/jpeg, 5 bytes'))
    const large = image('A'.repeat(7_000_000))
    await expect(send(one, large)).rejects.toMatchObject(refused('5,242,880 bytes'))
    const eleven = Array.from({ length: 11 }, () => image())
    await expect(send(one, ...eleven)).rejects.toMatchObject(refused('10 images'))
    const { log } = await core.manager.get('u_ada', sessionId)
    expect(log.filter(({ sessionUpdate }) => sessionUpdate === 'user_message_chunk')).toEqual([])

    await send(one, ...text('What is it?'), image())
    await send(one, ...text('And now?'))
    for (const { body } of bench.provider.requests) {
      const asked = body.messages.find(({ role }) => role === 'user')
      expect(JSON.stringify(asked?.content)).toContain(`data:image/png;base64,${DOT}`)
    }
    expect(bench.provider.requests).toHaveLength(2)
  })

  test('a prompt: our stream as it is, the answer behind its last event', async () => {
    await using bench = await AgentBench.start([textAnswer('Hello.')])
    await using one = await connect(await bench.core())
    const sessionId = await newSession(one, by(ADA, { sessionId: 'my-own', mode: 'yolo' }))
    expect(sessionId).toBe('my-own')
    const answer = await one.request(methods.agent.session.prompt, {
      sessionId,
      prompt: text('hi'),
      ...by(ADA, { requestId: 'r1' }),
    })
    const events = one.updates.map(({ update }) => update as SessionEvent)
    const last = events.at(-1)
    expect(last !== undefined && metaOf(last).event).toMatchObject({
      type: 'prompt_ended',
      reason: 'completed',
    })
    const settled = events.filter((event) => metaOf(event).live !== true)
    expect(settled.map((event) => metaOf(event).seq)).toEqual(settled.map((_, index) => index + 1))
    const promptId = last === undefined ? '' : metaOf(last).promptId
    expect(answer).toEqual({ stopReason: 'end_turn', _meta: { sandlot: { promptId, reason: 'completed' } } })
    const accepted = one.others.filter(({ method }) => method === EXT.promptAccepted)
    expect(accepted.map(({ params }) => promptAccepted.parse(params))).toEqual([
      { sessionId, promptId, requestId: 'r1' },
    ])
    const changes = one.others
      .filter(({ method }) => method === EXT.sessionChanged)
      .map(({ params }) => sessionChanged.parse(params))
    expect(changes.at(-1)).toMatchObject({
      userId: 'u_ada',
      summary: { sessionId, running: false, title: 'Hi' },
    })

    const again = await one.request(methods.agent.session.prompt, {
      sessionId,
      prompt: text('hi'),
      ...by(ADA, { requestId: 'r1' }),
    })
    expect(again).toMatchObject({ _meta: { sandlot: { promptId, duplicate: true } } })
  })

  test('load after n: what is settled, what is in flight, then live, all before and behind the answer', async () => {
    const steps = [sse(deltaChunk({ content: 'So far' }))]
    await using bench = await AgentBench.start([{ steps, after: 'hang' }])
    const core = await bench.core()
    await using one = await connect(core)
    const sessionId = await newSession(one)
    const prompting = one.request(methods.agent.session.prompt, { sessionId, prompt: text('hi'), ...by(ADA) })
    await expect.poll(() => one.updates.at(-1)?.update.sessionUpdate).toBe('agent_message_chunk')

    await using two = await connect(core)
    const load = { cwd: '/workspace', mcpServers: [], sessionId, ...by(ADA, { after: 1 }) }
    const answer = await two.request(methods.agent.session.load, load)
    const seqs = two.updates.map(({ update }) => metaOf(update as SessionEvent).seq)
    expect(answer).toMatchObject({ _meta: { sandlot: { seq: 3 } }, modes: { currentModeId: 'auto-edit' } })
    expect(seqs).toEqual([2, 3, undefined])
    expect(two.updates.at(-1)?.update).toMatchObject({ content: { text: 'So far' } })

    await two.connection.agent.notify(methods.agent.session.cancel, { sessionId, ...by(ADA) })
    expect(await prompting).toMatchObject({ stopReason: 'cancelled' })
    await expect
      .poll(() => metaOf(two.updates.at(-1)?.update as SessionEvent).event?.type)
      .toBe('prompt_ended')
  })

  test('a client that leaves ends nothing', async () => {
    const slow = heldTool('slow', true)
    await using bench = await AgentBench.start([
      toolCalls([{ id: 'c', name: 'slow', args: { key: 'k' } }]),
      textAnswer('ok'),
    ])
    const core = await bench.core({ tools: [slow.tool] })
    const one = await connect(core)
    const sessionId = await newSession(one)
    const prompting = one.request(methods.agent.session.prompt, { sessionId, prompt: text('hi'), ...by(ADA) })
    await slow.whenBegun(1)
    await one[Symbol.asyncDispose]()
    await expect(prompting).rejects.toThrow()
    slow.release('k')
    const session = await core.manager.get('u_ada', sessionId)
    await whenIdle(session)
    expect(session.log.map((event) => metaOf(event).event?.type)).toContain('prompt_ended')
  })

  test('a cancel right behind a prompt finds it', async () => {
    await using bench = await AgentBench.start()
    await using one = await connect(await bench.core())
    const sessionId = await newSession(one)
    for (let n = 0; n < 5; n++) {
      const params = { sessionId, prompt: text('hi'), ...by(ADA, { requestId: `r${n}` }) }
      const prompting = one.request(methods.agent.session.prompt, params)
      await one.connection.agent.notify(methods.agent.session.cancel, { sessionId, ...by(ADA) })
      expect(await prompting).toMatchObject({ stopReason: 'cancelled' })
    }
  })

  test('approvals by the extension request', async () => {
    const change = heldTool('change', false)
    change.release('w')
    await using bench = await AgentBench.start([
      toolCalls([{ id: 'c', name: 'change', args: { key: 'w' } }]),
      textAnswer('ok'),
    ])
    await using one = await connect(await bench.core({ tools: [change.tool] }))
    const sessionId = await newSession(one)
    const prompting = one.request(methods.agent.session.prompt, { sessionId, prompt: text('hi'), ...by(ADA) })
    await expect
      .poll(() =>
        one.updates.some(({ update }) => metaOf(update as SessionEvent).event?.type === 'approval_asked'),
      )
      .toBe(true)
    const approve = { sessionId, toolCallId: 'c', optionId: 'allow_once' }
    const { approvals } = pendingApprovalList.parse(
      await one.request(EXT.approvals, { sessionId, user: ADA }),
    )
    expect(approvals).toMatchObject([{ callId: 'c', name: 'change', arguments: { key: 'w' } }])
    const rule = approvals[0]?.options.find(({ remembers }) => remembers?.scope === 'always')
    expect(rule).toBeDefined()
    await expect(
      one.request(EXT.approve, { ...approve, optionId: rule?.optionId, user: ADA, mayMakeRules: false }),
    ).rejects.toMatchObject({ data: { code: 'forbidden' } })
    await expect(one.request(EXT.approve, { ...approve, user: BOB })).rejects.toMatchObject({ code: -32_002 })
    expect(approveResult.parse(await one.request(EXT.approve, { ...approve, user: ADA }))).toEqual({
      answered: true,
      by: 'user',
    })
    expect(await prompting).toMatchObject({ stopReason: 'end_turn' })
    await expect(
      one.request(EXT.cancelCall, { sessionId, toolCallId: 'x', user: ADA }),
    ).rejects.toMatchObject({ data: { code: 'not_found' } })
  })

  test('without a mode a new session is in the default of whoever asks, as far as the ceiling permits', async () => {
    await using bench = await AgentBench.start()
    const core = await bench.core()
    await using one = await connect(core)
    const modeOf = async (modeCeiling: string | undefined, asked: object): Promise<string> => {
      const sessionId = await newSession(one, by({ ...ADA, modeCeiling }, asked))
      return (await core.manager.get('u_ada', sessionId)).summary().mode
    }
    expect([
      await modeOf(undefined, { defaultMode: 'yolo' }),
      await modeOf('auto-edit', { defaultMode: 'yolo' }),
      await modeOf('manual', { defaultMode: 'yolo' }),
      await modeOf('manual', {}),
      await modeOf('auto-edit', { defaultMode: 'yolo', mode: 'manual' }),
    ]).toEqual(['yolo', 'auto-edit', 'manual', 'manual', 'manual'])
    await expect(modeOf('auto-edit', { defaultMode: 'yolo', mode: 'yolo' })).rejects.toMatchObject({
      data: { code: 'forbidden' },
    })
  })

  test('what is wrong is a typed error with a safe text', async () => {
    await using bench = await AgentBench.start()
    const core = await bench.core()
    await using one = await connect(core)
    const sessionId = await newSession(one)
    const prompt = (params: object) =>
      one.request(methods.agent.session.prompt, { sessionId, prompt: text('hi'), ...params })
    const wrong: [() => Promise<unknown>, number, string][] = [
      [() => newSession(one, { ...by(ADA), cwd: 'relative' }), -32_602, 'bad_request'],
      [() => newSession(one, by(ADA, { sessionId })), -32_600, 'conflict'],
      [() => newSession(one, by({ ...ADA, modeCeiling: 'manual' }, { mode: 'yolo' })), -32_600, 'forbidden'],
      [() => newSession(one, {}), -32_602, 'bad_request'],
      [() => prompt({}), -32_602, 'bad_request'],
      [() => prompt(by(BOB)), -32_002, 'not_found'],
      [() => prompt({ ...by(ADA), sessionId: 'nobody' }), -32_002, 'not_found'],
      [() => prompt({ ...by(ADA), prompt: text('  ') }), -32_602, 'bad_request'],
      [() => prompt({ ...by(ADA), prompt: text('x'.repeat(200_001)) }), -32_602, 'too_large'],
      [
        () => prompt({ ...by(ADA), prompt: [{ type: 'audio', data: '', mimeType: 'audio/wav' }] }),
        -32_602,
        'bad_request',
      ],
      [
        () => one.request(methods.agent.session.setMode, { sessionId, modeId: 'wild', ...by(ADA) }),
        -32_602,
        'bad_request',
      ],
      [
        () =>
          one.request(methods.agent.session.load, {
            sessionId,
            cwd: '/workspace',
            mcpServers: [],
            ...by(BOB),
          }),
        -32_002,
        'not_found',
      ],
      [() => one.request(methods.agent.session.list, { cursor: 'x', ...by(ADA) }), -32_602, 'bad_request'],
      [() => one.request(EXT.approve, { sessionId, user: ADA }), -32_602, 'bad_request'],
    ]
    for (const [request, code, ours] of wrong) {
      await expect(request()).rejects.toMatchObject({ code, data: { code: ours } })
    }
    await expect(one.request('_nobody/knows', {})).rejects.toMatchObject({ code: -32_601 })
    expect(core.warnings).toEqual([])
  })

  test('list, set_mode, close and delete', async () => {
    await using bench = await AgentBench.start([{ steps: [], after: 'hang' }])
    await using one = await connect(await bench.core())
    const sessionId = await newSession(one)
    await one.request(methods.agent.session.setMode, { sessionId, modeId: 'manual', ...by(ADA) })
    expect(one.updates.at(-1)?.update).toMatchObject({
      sessionUpdate: 'current_mode_update',
      currentModeId: 'manual',
    })
    expect(await one.request(methods.agent.session.list, by(ADA))).toMatchObject({
      sessions: [{ sessionId, cwd: '/workspace' }],
    })
    expect(await one.request(methods.agent.session.list, { cwd: '/elsewhere', ...by(ADA) })).toMatchObject({
      sessions: [],
    })
    expect(await one.request(methods.agent.session.list, by(BOB))).toMatchObject({ sessions: [] })
    const prompting = one.request(methods.agent.session.prompt, { sessionId, prompt: text('hi'), ...by(ADA) })
    await one.request(methods.agent.session.close, { sessionId, ...by(ADA) })
    expect(await prompting).toMatchObject({ stopReason: 'cancelled' })
    await one.request(methods.agent.session.delete, { sessionId, ...by(ADA) })
    await one.request(methods.agent.session.delete, { sessionId, ...by(ADA) })
    expect(await one.request(methods.agent.session.list, by(ADA))).toMatchObject({ sessions: [] })
  })
})

describe('a foreign client', () => {
  const FOREIGN = { capabilities: {} }

  test('is the local user, gets no metadata of ours, no copy of what was streamed, and no text but the answer', async () => {
    await using bench = await AgentBench.start([textAnswer('Hello there.', { pieceLength: 3 })])
    const core = await bench.core()
    await using one = await connect(core, FOREIGN)
    const sessionId = await newSession(one, { cwd: '/home/ada/project' })
    const answer = await one.request(methods.agent.session.prompt, { sessionId, prompt: text('hi') })
    expect(answer).toMatchObject({ stopReason: 'end_turn' })
    const chunks = one.updates.flatMap(({ update }) =>
      update.sessionUpdate === 'agent_message_chunk' ? [update.content] : [],
    )
    const said = chunks.map((content) => (content.type === 'text' ? content.text : '')).join('')
    expect(said).toBe('Hello there.')
    expect(JSON.stringify(one.updates)).not.toContain('sandlot')
    expect(one.updates.map(({ update }) => update.sessionUpdate)).not.toContain('user_message_chunk')
    expect((await core.manager.get('local', sessionId)).userId).toBe('local')
    expect(one.others).toEqual([])

    await using two = await connect(core, FOREIGN)
    await two.request(methods.agent.session.load, { sessionId, cwd: '/home/ada/project', mcpServers: [] })
    const replayed = two.updates.map(({ update }) => update.sessionUpdate)
    expect(replayed.filter((kind) => kind.endsWith('message_chunk'))).toEqual([
      'user_message_chunk',
      'agent_message_chunk',
    ])
  })

  const call = toolCalls([{ id: 'c', name: 'change', args: { key: 'w' } }])

  test('is asked for permission, with the call', async () => {
    const change = heldTool('change', false)
    change.release('w')
    const asked: RequestPermissionRequest[] = []
    await using bench = await AgentBench.start([call, textAnswer('ok')])
    await using one = await connect(await bench.core({ tools: [change.tool] }), {
      ...FOREIGN,
      permission: async (request) => {
        asked.push(request)
        return { outcome: { outcome: 'selected', optionId: 'allow_once' } }
      },
    })
    const sessionId = await newSession(one, {})
    await one.request(methods.agent.session.prompt, { sessionId, prompt: text('hi') })
    expect(asked).toMatchObject([
      { sessionId, toolCall: { toolCallId: 'c', title: 'change w', rawInput: { key: 'w' } } },
    ])
    expect(change.begun).toEqual(['w'])
  })

  test('that cannot be asked is denied; that answers “cancelled” too', async () => {
    const change = heldTool('change', false)
    for (const permission of [undefined, async () => ({ outcome: { outcome: 'cancelled' as const } })]) {
      await using bench = await AgentBench.start([call, textAnswer('ok')])
      await using one = await connect(await bench.core({ tools: [change.tool] }), {
        ...FOREIGN,
        permission,
      })
      const sessionId = await newSession(one, {})
      expect(
        await one.request(methods.agent.session.prompt, { sessionId, prompt: text('hi') }),
      ).toMatchObject({ stopReason: 'end_turn' })
    }
    expect(change.begun).toEqual([])
  })

  test('that never answers holds up neither a cancel nor the expiry', async () => {
    const change = heldTool('change', false)
    const permission = (): Promise<RequestPermissionResponse> => new Promise(() => undefined)
    await using bench = await AgentBench.start([call, call, textAnswer('ok')])
    const core = await bench.core({ tools: [change.tool], approvalTtlMs: 150 })
    await using one = await connect(core, { ...FOREIGN, permission })
    const sessionId = await newSession(one, {})
    const first = one.request(methods.agent.session.prompt, { sessionId, prompt: text('hi') })
    const session = await core.manager.get('local', sessionId)
    await expect.poll(() => session.pendingApprovals().length).toBe(1)
    await one.connection.agent.notify(methods.agent.session.cancel, { sessionId })
    expect(await first).toMatchObject({ stopReason: 'cancelled' })
    expect(
      await one.request(methods.agent.session.prompt, { sessionId, prompt: text('again') }),
    ).toMatchObject({ stopReason: 'end_turn' })
    expect(change.begun).toEqual([])
  })
})

describe('a prompt that ends with the first failed call', () => {
  const fails = (): FakeAnswer => toolCalls([{ id: 'c', name: 'nobody_has_this', args: {} }])

  test('by its own wish or by our page’s, in the log and with words; other prompts go on', async () => {
    await using bench = await AgentBench.start([fails(), fails(), textAnswer('So be it.'), fails()])
    const core = await bench.core()
    await using editor = await connect(core, { capabilities: {} })
    const sessionId = await newSession(editor, {})
    const prompt = (more: object = {}) =>
      editor.request(methods.agent.session.prompt, { sessionId, prompt: text('go'), ...more })
    expect(await prompt({ _meta: { sandlot: { onError: 'stop' } } })).toEqual({
      stopReason: 'end_turn',
      _meta: { sandlot: { reason: 'error' } },
    })
    expect(said(editor, sessionId)).toContain(
      'Stopped because a call failed: Unknown tool nobody_has_this (unknown tool)',
    )
    expect(await prompt()).toEqual({ stopReason: 'end_turn' })
    expect(said(editor, sessionId)).toMatch(/So be it\.$/)
    await expect(prompt({ _meta: { sandlot: { onError: 'panic' } } })).rejects.toMatchObject({
      data: { code: 'bad_request' },
    })

    await using ours = await connect(core)
    const mine = await newSession(ours)
    const params = { sessionId: mine, prompt: text('go'), ...by(ADA, { onError: 'stop' }) }
    expect(await ours.request(methods.agent.session.prompt, params)).toMatchObject({
      _meta: { sandlot: { reason: 'error' } },
    })
    const { log } = await core.manager.get('u_ada', mine)
    expect(
      log.map((event) => metaOf(event).event).find((one) => one?.type === 'prompt_started'),
    ).toMatchObject({
      onError: 'stop',
    })
  })

  test('also one that had to wait', async () => {
    const slow = heldTool('slow', true)
    const first = toolCalls([{ id: 'a', name: 'slow', args: { key: 'k' } }])
    await using bench = await AgentBench.start([first, textAnswer('first'), fails()])
    const core = await bench.core({ tools: [slow.tool] })
    await using ours = await connect(core)
    const sessionId = await newSession(ours)
    const prompt = (more: object) =>
      ours.request(methods.agent.session.prompt, { sessionId, prompt: text('go'), ...by(ADA, more) })
    const running = prompt({})
    await slow.whenBegun(1)
    const waiting = prompt({ whenBusy: 'queue', onError: 'stop' })
    const session = await core.manager.get('u_ada', sessionId)
    await expect.poll(() => session.log.map((event) => metaOf(event).event?.type)).toContain('message_queued')
    slow.release('k')
    await running
    expect(await waiting).toMatchObject({ _meta: { sandlot: { reason: 'error' } } })
  })
})
