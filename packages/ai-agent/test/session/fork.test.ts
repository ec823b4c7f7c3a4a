/** A session branches off from any prompt of another one. */
import { type SessionEvent, isOutcome, metaOf, seqOf } from '@sandlot/shared/chat/events'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { forkedLog } from '../../src/session/fork.ts'
import { AgentBench, ask, happened, heldTool, newSession, whenHappened } from '../support/agent-fixture.ts'
import { textAnswer, toolCalls } from '../support/fake-provider.ts'

const users = (log: readonly SessionEvent[]): unknown[] =>
  log.flatMap((event) =>
    event.sessionUpdate === 'user_message_chunk' && event.content.type === 'text' ? [event.content.text] : [],
  )
const promptIds = (log: readonly SessionEvent[]): string[] =>
  log.flatMap((event) =>
    metaOf(event).event?.type === 'prompt_started' ? [metaOf(event).promptId ?? ''] : [],
  )

describe('a fork', () => {
  test('goes on after a prompt: what the model was told so far, outputs of its own, nothing of later', async () => {
    await using bench = await AgentBench.start([
      toolCalls([{ id: 'c', name: 'echo', args: { text: 'x' } }]),
      textAnswer('one'),
      textAnswer('two'),
      textAnswer('other two'),
      textAnswer('three'),
    ])
    const core = await bench.core()
    const session = await newSession(core)
    const first = await session.prompt('1', { requestId: 'r1' })
    await first.done
    await ask(session, '2')
    await core.store.outputs.append(session.id, 'c', 0, new TextEncoder().encode('all of it'))

    const fork = await core.manager.fork('u_ada', session.id, { promptId: first.promptId, where: 'after' })
    expect(fork.id).not.toBe(session.id)
    expect(fork.summary()).toMatchObject({ title: '1', running: false, waiting: 0 })
    expect(fork.log.map(seqOf)).toEqual(fork.log.map((_, place) => place + 1))
    expect(await core.store.log.read(fork.id)).toEqual(fork.log)
    expect(users(fork.log)).toEqual(['1'])
    await ask(fork, '2, but other')
    expect(users(fork.log)).toEqual(['1', '2, but other'])
    const [, , second, other] = bench.provider.requests.map(({ body }) => body.messages)
    expect(other?.slice(0, -1)).toEqual(second?.slice(0, -1))

    // Each continues alone.
    await core.manager.removal.delete('u_ada', session.id)
    expect(new TextDecoder().decode(await core.store.outputs.read(fork.id, 'c', 0, 99))).toBe('all of it')
    await ask(fork, '3')
    // The request id belongs to the session that is gone, not to the copy of its prompt.
    expect(happened(fork.log, 'prompt_started').map(({ requestId }) => requestId)).toEqual([
      undefined,
      undefined,
      undefined,
    ])
  })

  test('before a prompt: without it; the first one gives an empty session', async () => {
    await using bench = await AgentBench.start([textAnswer('one'), textAnswer('two')])
    const core = await bench.core()
    const session = await newSession(core)
    const first = await ask(session, '1')
    const second = await ask(session, '2')
    const at = (promptId: string) => core.manager.fork('u_ada', session.id, { promptId, where: 'before' })
    expect(users((await at(second.promptId)).log)).toEqual(['1'])
    expect(users((await at(first.promptId)).log)).toEqual([])
  })

  test('carries no approval: what was allowed for the session is asked again', async () => {
    const change = heldTool('change', false)
    for (const key of ['a', 'b']) change.release(key)
    const call = (key: string) => toolCalls([{ id: `c_${key}`, name: 'change', args: { key } }])
    await using bench = await AgentBench.start([call('a'), textAnswer('1'), call('b'), textAnswer('2')])
    const core = await bench.core({ tools: [change.tool] })
    const session = await newSession(core, 'manual')
    const { promptId, done } = await session.prompt('go')
    await whenHappened(session, 'approval_asked')
    const asked = happened(session.log, 'approval_asked')[0]
    const always = asked?.options.find(({ kind }) => kind === 'allow_always')
    await session.answer('c_a', always?.optionId ?? 'allow_once')
    await done
    const fork = await core.manager.fork('u_ada', session.id, { promptId, where: 'after' })
    expect(happened(fork.log, 'approval_asked')).toEqual([])
    const again = await fork.prompt('go on')
    await whenHappened(fork, 'approval_asked')
    await fork.answer('c_b', 'allow_once')
    await again.done
    expect(change.begun).toEqual(['a', 'b'])
  })

  test('of a prompt that runs, of none, of somebody else', async () => {
    await using bench = await AgentBench.start([{ steps: [], after: 'hang' }])
    const core = await bench.core()
    const session = await newSession(core)
    const { promptId, done } = await session.prompt('go')
    const fork = (user: string, id: string, where: 'before' | 'after' = 'after') =>
      core.manager.fork(user, session.id, { promptId: id, where })
    await expect(fork('u_ada', promptId)).rejects.toMatchObject({ code: 'busy' })
    await expect(fork('u_ada', 'p_none')).rejects.toMatchObject({ code: 'not_found' })
    await expect(fork('u_bob', promptId, 'before')).rejects.toMatchObject({ code: 'not_found' })
    expect((await fork('u_ada', promptId, 'before')).running).toBe(false)
    await session.cancel()
    await done
  })

  test('outputs are fetched from the new session; a summary stands for what it stood for', async () => {
    await using bench = await AgentBench.start([
      toolCalls([{ id: 'c', name: 'echo', args: { text: 'x' } }]),
      textAnswer('one'),
      textAnswer('two'),
    ])
    const core = await bench.core()
    const session = await newSession(core)
    await ask(session, '1')
    const last = await ask(session, '2')
    const log = session.log.map((event): SessionEvent => {
      if (!isOutcome(event)) return event
      const sandlot = { ...metaOf(event), outputInfo: { bytes: 1, lines: 1, truncated: false, url: '/old' } }
      return { ...event, _meta: { sandlot } }
    })
    fc.assert(
      fc.property(fc.nat({ max: log.length }), (upTo) => {
        const compacted = { type: 'compacted', summary: 's', upTo } as const
        const end = log.findLastIndex((event) => metaOf(event).event?.type === 'prompt_ended')
        const summed = log.map((event, place): SessionEvent =>
          place === end - 1
            ? { ...event, _meta: { sandlot: { ...metaOf(event), event: compacted } } }
            : event,
        )
        const fork = forkedLog(summed, { promptId: last.promptId, where: 'after' }, 's_new')
        const moved = happened(fork, 'compacted')[0]?.upTo ?? -1
        // Nothing but whole copies here, so the number is the same.
        expect(moved).toBe(upTo)
        expect(fork.filter(isOutcome).map((event) => metaOf(event).outputInfo?.url)).toEqual([
          '/api/sessions/s_new/outputs/c',
        ])
        expect(promptIds(fork)).toHaveLength(2)
      }),
    )
  })
})
