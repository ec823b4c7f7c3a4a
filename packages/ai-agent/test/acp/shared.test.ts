/** A session that is shared: what its owner, a participant, an approver, a watcher and others can do, over ACP. */
import { setTimeout as sleep } from 'node:timers/promises'
import { methods } from '@agentclientprotocol/sdk'
import { EXT } from '@sandlot/shared/acp/meta'
import { type SessionEvent, metaOf, sandlotEventOf } from '@sandlot/shared/chat/events'
import { type NewShare, type ShareList, shareList } from '@sandlot/shared/chat/shares'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { AgentBench, type Core, type Held, happened, heldTool } from '../support/agent-fixture.ts'
import { textAnswer, toolCalls } from '../support/fake-provider.ts'
import { type TestClient, by, connect, newSession, text } from './test-client.ts'

const ADA = { id: 'u_ada', role: 'member', name: 'Ada' } as const
const BOB = { id: 'u_bob', role: 'member', name: 'Bob', teams: ['t_data'] } as const
const EVE = { id: 'u_eve', role: 'member', name: 'Eve' } as const
const GIL = { id: 'u_gil', role: 'guest', name: 'Gil' } as const

let bench: AgentBench
let core: Core
let change: Held
let ada: TestClient
let bob: TestClient
let sessionId: string

beforeEach(async () => {
  bench = await AgentBench.start()
  change = heldTool('change', false)
  core = await bench.core({ tools: [change.tool] })
  ada = await connect(core)
  bob = await connect(core)
  sessionId = await newSession(ada, by(ADA, { mode: 'yolo' }))
})
afterEach(async () => {
  await ada[Symbol.asyncDispose]()
  await bob[Symbol.asyncDispose]()
  await bench[Symbol.asyncDispose]()
})

interface Who {
  readonly id: string
  readonly role: 'member' | 'guest'
  readonly name: string
  readonly teams?: readonly string[]
}

const share = async (more: Partial<NewShare>): Promise<ShareList> =>
  shareList.parse(
    await ada.request(EXT.shares, {
      user: ADA,
      sessionId,
      ask: {
        do: 'put',
        share: {
          kind: 'person',
          targetId: BOB.id,
          access: 'watch',
          mode: 'manual',
          mayApprove: false,
          expiresAt: null,
          ...more,
        },
      },
    }),
  )
const load = (one: TestClient, user: Who, after = 0) =>
  one.request(methods.agent.session.load, {
    sessionId,
    cwd: '/workspace',
    mcpServers: [],
    ...by(user, { after }),
  })
const prompt = (one: TestClient, user: Who, words: string, more: object = {}) =>
  one.request(methods.agent.session.prompt, { sessionId, prompt: text(words), ...by(user, more) })
const log = async (): Promise<readonly SessionEvent[]> => (await core.manager.get(ADA.id, sessionId)).log
const heard = (one: TestClient): SessionEvent[] => one.updates.map(({ update }) => update as SessionEvent)
const kinds = (one: TestClient): (string | undefined)[] =>
  heard(one).map((event) => sandlotEventOf(event)?.type)

/** The result of a request: `ok`, or the code of its refusal. */
async function comesTo(asked: Promise<unknown>): Promise<string> {
  try {
    await asked
    return 'ok'
  } catch (error) {
    return (error as { data?: { code?: string } }).data?.code ?? String(error)
  }
}

describe('what each may do', () => {
  const REQUESTS: Record<string, (one: TestClient, user: Who) => Promise<unknown>> = {
    load,
    resume: (one, user) =>
      one.request(methods.agent.session.resume, { sessionId, cwd: '/workspace', ...by(user) }),
    'what waits': (one, user) => one.request(EXT.approvals, { user, sessionId }),
    comment: (one, user) =>
      one.request(EXT.comment, { user, sessionId, commentId: `r_${user.id}`, text: 'Hm.', mentions: [] }),
    approve: (one, user) =>
      one.request(EXT.approve, { user, sessionId, toolCallId: 'none', optionId: 'allow_once' }),
    'stop a call': (one, user) => one.request(EXT.cancelCall, { user, sessionId, toolCallId: 'none' }),
    'set the mode': (one, user) =>
      one.request(methods.agent.session.setMode, { sessionId, modeId: 'manual', ...by(user) }),
    rename: (one, user) => one.request(EXT.rename, { user, sessionId, title: 'Mine' }),
    fork: (one, user) => one.request(EXT.fork, { user, sessionId, promptId: 'none', where: 'after' }),
    export: (one, user) => one.request(EXT.exportPrompt, { user, sessionId, promptId: 'none' }),
    'see its shares': (one, user) => one.request(EXT.shares, { user, sessionId, ask: { do: 'list' } }),
    'see its snapshots': (one, user) => one.request(EXT.snapshots, { user, sessionId, ask: { do: 'list' } }),
    close: (one, user) => one.request(methods.agent.session.close, { sessionId, ...by(user) }),
  }
  const READS = ['load', 'resume', 'what waits']
  const WRITES = ['comment', 'stop a call']
  // A refusal of the thing itself, which is not there, shows that the request was let in.
  const LET_IN = new Set(['ok', 'not_found'])

  const rights = async (user: Who): Promise<Record<string, string>> => {
    const results: Record<string, string> = {}
    for (const [name, ask] of Object.entries(REQUESTS)) results[name] = await comesTo(ask(bob, user))
    return results
  }

  test.each([
    { who: 'a watcher', share: { access: 'watch' } as const, may: READS },
    { who: 'a participant', share: { access: 'take_part' } as const, may: [...READS, ...WRITES] },
    { who: 'an approver', share: { access: 'watch', mayApprove: true } as const, may: [...READS, 'approve'] },
  ])('$who', async ({ share: terms, may }) => {
    await share(terms)
    const got = await rights(BOB)
    for (const [name, result] of Object.entries(got)) {
      if (may.includes(name)) expect([name, LET_IN.has(result)]).toEqual([name, true])
      else expect([name, result]).toEqual([name, 'forbidden'])
    }
  })

  test('others do not learn that there is such a chat', async () => {
    await share({ access: 'take_part' })
    const there = sessionId
    const got = await rights(EVE)
    sessionId = 's_nowhere'
    expect(got).toEqual(await rights(EVE))
    expect(new Set(Object.values(got))).not.toContain('forbidden')
    sessionId = there
    expect(await comesTo(prompt(bob, EVE, 'Hello?'))).toBe('not_found')
    // A delete of what is not theirs is silent, as of what is not there.
    await bob.request(methods.agent.session.delete, { sessionId, ...by(BOB) })
    expect(await comesTo(load(ada, ADA))).toBe('ok')
  })

  test('a team’s members by their teams, until they are in it no more', async () => {
    await share({ kind: 'team', targetId: 't_data' })
    expect(await comesTo(load(bob, BOB))).toBe('ok')
    expect(await comesTo(load(bob, { ...BOB, teams: [] }))).toBe('not_found')
  })
})

test('who watches and may approve answers a call as it is: an edit, and an answer that is remembered, need taking part', async () => {
  await share({ access: 'watch', mayApprove: true })
  bench.provider.add(toolCalls([{ id: 'c', name: 'change', args: { key: 'k' } }]), textAnswer('Done.'))
  await load(ada, ADA)
  await ada.request(methods.agent.session.setMode, { sessionId, modeId: 'manual', ...by(ADA) })
  const done = prompt(ada, ADA, 'Change it.')
  await expect.poll(() => kinds(ada)).toContain('approval_asked')
  const asked = happened(await log(), 'approval_asked')[0]
  const answer = (more: object) =>
    comesTo(
      bob.request(EXT.approve, {
        user: BOB,
        sessionId,
        toolCallId: asked?.toolCallId,
        optionId: 'allow_once',
        ...more,
      }),
    )
  const kept = (asked?.options ?? []).flatMap(({ optionId, remembers }) =>
    remembers === undefined ? [] : [optionId],
  )
  expect(kept).toContain('allow_session')
  for (const optionId of kept) expect(await answer({ optionId })).toBe('forbidden')
  expect(await answer({ input: { key: 'other' } })).toBe('forbidden')
  expect(happened(await log(), 'approval_answered')).toEqual([])
  await share({ access: 'take_part', mayApprove: true })
  change.release('other')
  expect(await answer({ input: { key: 'other' } })).toBe('ok')
  await done
})

describe('a participant’s message', () => {
  test('runs in the share’s mode, says who wrote it, and only the owner or who is named answers', async () => {
    await share({ access: 'take_part' })
    bench.provider.add(toolCalls([{ id: 'c', name: 'change', args: { key: 'k' } }]), textAnswer('Done.'))
    await load(bob, BOB)
    await load(ada, ADA)
    const done = prompt(bob, BOB, 'Change it.')
    await expect.poll(() => kinds(ada)).toContain('approval_asked')
    const toolCallId = happened(await log(), 'approval_asked')[0]?.toolCallId
    expect(
      await comesTo(bob.request(EXT.approve, { user: BOB, sessionId, toolCallId, optionId: 'allow_once' })),
    ).toBe('forbidden')
    change.release('k')
    await ada.request(EXT.approve, { user: ADA, sessionId, toolCallId, optionId: 'allow_once' })
    await done
    const authors = heard(bob)
      .filter(
        (event) =>
          event.sessionUpdate === 'user_message_chunk' || sandlotEventOf(event)?.type === 'approval_answered',
      )
      .map((event) => metaOf(event).author)
    expect(authors).toEqual([
      { id: BOB.id, name: 'Bob' },
      { id: ADA.id, name: 'Ada' },
    ])
    expect((await core.store.usage.spentSince(BOB.id, 0, Date.now())).turns).toBe(2)
    expect((await core.store.usage.spentSince(ADA.id, 0, Date.now())).turns).toBe(0)
  })

  test('of a guest counts for the owner', async () => {
    await share({ access: 'take_part', targetId: GIL.id })
    bench.provider.add(textAnswer('Hello.'))
    await prompt(bob, GIL, 'Hello')
    expect((await core.store.usage.spentSince(ADA.id, 0, Date.now())).turns).toBe(1)
    expect((await core.store.usage.spentSince(GIL.id, 0, Date.now())).turns).toBe(0)
  })

  test('never joins a running prompt, and lowers the one that takes it up', async () => {
    await share({ access: 'take_part' })
    bench.provider.add(toolCalls([{ id: 'c', name: 'change', args: { key: 'k' } }]))
    void prompt(ada, ADA, 'Change it.')
    await change.whenBegun(1)
    void prompt(bob, BOB, 'And that.', { whenBusy: 'steer' })
    await expect
      .poll(async () => happened(await log(), 'message_queued'))
      .toMatchObject([{ as: 'queue', modeCeiling: 'manual' }])
    bench.provider.add(textAnswer('Changed.'), toolCalls([{ id: 'd', name: 'change', args: { key: 'l' } }]))
    change.release('k')
    // In the session's own mode, yolo, nothing would ask.
    await expect.poll(async () => happened(await log(), 'approval_asked')).toHaveLength(1)
    await core.manager.get(ADA.id, sessionId).then((session) => session.stopAll())
  })

  test('is under the share’s mode after a restart too', async () => {
    await share({ access: 'take_part' })
    bench.provider.add(toolCalls([{ id: 'c', name: 'change', args: { key: 'k' } }]))
    void prompt(bob, BOB, 'Change it.').catch(() => undefined)
    await expect.poll(async () => happened(await log(), 'approval_asked')).toHaveLength(1)
    await core.leave()
    core = await bench.core({ tools: [change.tool] })
    await core.manager.resumeUnfinished()
    bench.provider.add(toolCalls([{ id: 'd', name: 'change', args: { key: 'l' } }]))
    const session = await core.manager.get(ADA.id, sessionId)
    const [first] = happened(session.log, 'approval_asked')
    await session.answer(first?.toolCallId ?? '', 'reject_once')
    await expect.poll(() => happened(session.log, 'approval_asked')).toHaveLength(2)
    await session.stopAll()
  })

  test('a command of the chat is the owner’s', async () => {
    await share({ access: 'take_part' })
    expect(await comesTo(prompt(bob, BOB, '/compact'))).toBe('forbidden')
  })
})

describe('what ends', () => {
  test('a revoked share ends the stream at once, and what waited of theirs does not run', async () => {
    const { shares } = await share({ access: 'take_part' })
    await load(bob, BOB)
    bench.provider.add(toolCalls([{ id: 'c', name: 'change', args: { key: 'k' } }]))
    void prompt(ada, ADA, 'Change it.')
    await change.whenBegun(1)
    const waiting = prompt(bob, BOB, 'And that.')
    void waiting.catch(() => undefined)
    await expect.poll(async () => happened(await log(), 'message_queued')).toHaveLength(1)
    await ada.request(EXT.shares, { user: ADA, sessionId, ask: { do: 'remove', id: shares[0]?.id } })
    const before = bob.updates.length
    expect(happened(await log(), 'message_unqueued')).toMatchObject([{ why: 'withdrawn' }])
    await expect
      .poll(() => bob.others)
      .toContainEqual({ method: EXT.sessionClosed, params: { sessionId, why: 'unshared' } })
    bench.provider.add(textAnswer('Changed.'))
    change.release('k')
    await expect.poll(async () => happened(await log(), 'prompt_ended')).toHaveLength(1)
    await sleep(150)
    expect(bob.updates).toHaveLength(before)
    expect(await comesTo(load(bob, BOB))).toBe('not_found')
    expect(await comesTo(prompt(bob, BOB, 'Hello?'))).toBe('not_found')
  })

  test('an expired one does too, by itself', async () => {
    await share({ expiresAt: Date.now() + 300 })
    await load(bob, BOB)
    await expect
      .poll(() => bob.others.map(({ method }) => method), { timeout: 3_000 })
      .toContain(EXT.sessionClosed)
    expect(await comesTo(load(bob, BOB))).toBe('not_found')
  })

  test('lists learn of it: who sees the chat, and who does not any more', async () => {
    const changes = () =>
      ada.others.filter(({ method }) => method === EXT.sessionChanged).map(({ params }) => params)
    const { shares } = await share({})
    await expect
      .poll(() => changes().at(-1))
      .toMatchObject({ userId: ADA.id, sharedWith: { people: [BOB.id], teams: [] } })
    await ada.request(EXT.shares, { user: ADA, sessionId, ask: { do: 'remove', id: shares[0]?.id } })
    await expect.poll(() => changes().at(-1)).toMatchObject({ unsharedFrom: { people: [BOB.id], teams: [] } })
  })

  test.each([{ handOver: undefined }, { handOver: BOB.id }])(
    'a removed owner’s shared chats: handed over to $handOver',
    async ({ handOver }) => {
      await share({ access: 'take_part' })
      await share({ targetId: GIL.id })
      await load(bob, GIL)
      await core.manager.removal.endAllOf(ADA.id, 'keep', handOver)
      expect(await comesTo(load(bob, GIL))).toBe(handOver === undefined ? 'not_found' : 'ok')
      const row = await core.store.sessions.get(sessionId)
      expect(row?.userId).toBe(handOver ?? ADA.id)
      if (handOver !== undefined)
        expect(await comesTo(bob.request(EXT.rename, { user: BOB, sessionId, title: 'Mine' }))).toBe('ok')
    },
  )

  test('a chat that is handed over goes on for those who read it, but not for its earlier owner', async () => {
    await share({ access: 'take_part' })
    await share({ targetId: GIL.id })
    await load(ada, ADA)
    await load(bob, GIL)
    await core.manager.removal.endAllOf(ADA.id, 'keep', BOB.id)
    await bob.request(EXT.rename, { user: BOB, sessionId, title: 'Mine' })
    const title = () => heard(bob).findLast((event) => event.sessionUpdate === 'session_info_update')
    await expect.poll(title).toMatchObject({ title: 'Mine' })
    await expect.poll(() => ada.others.map(({ method }) => method)).toContain(EXT.sessionClosed)
  })
})

describe('among people', () => {
  test('presence is told while there are several, and who is writing', async () => {
    await share({ access: 'take_part' })
    await load(ada, ADA)
    await sleep(250)
    expect(kinds(ada)).not.toContain('presence')
    await load(bob, BOB)
    const people = (one: TestClient) => happened(heard(one), 'presence').at(-1)?.people
    await expect
      .poll(() => people(ada))
      .toEqual([
        { id: ADA.id, name: 'Ada' },
        { id: BOB.id, name: 'Bob' },
      ])
    await bob.connection.agent.notify(EXT.typing, { user: BOB, sessionId })
    await expect.poll(() => people(ada)).toContainEqual({ id: BOB.id, name: 'Bob', typing: true })
    bench.provider.add(textAnswer('Hello.'))
    await prompt(bob, BOB, 'Hello')
    await expect
      .poll(() => people(ada))
      .toEqual([
        { id: ADA.id, name: 'Ada' },
        { id: BOB.id, name: 'Bob' },
      ])
    await bob[Symbol.asyncDispose]()
    await expect.poll(() => people(ada)).toEqual([])
    expect((await log()).some((event) => sandlotEventOf(event)?.type === 'presence')).toBe(false)
  })

  test('a comment is stored once and never read by the model', async () => {
    await share({ access: 'take_part' })
    const comment = { user: BOB, sessionId, commentId: 'r_1', text: 'Careful.', mentions: [ADA.id] }
    await bob.request(EXT.comment, comment)
    await bob.request(EXT.comment, comment)
    expect(happened(await log(), 'comment')).toEqual([
      { type: 'comment', commentId: 'r_1', text: 'Careful.', mentions: [ADA.id] },
    ])
    bench.provider.add(textAnswer('Hello.'))
    await prompt(ada, ADA, 'Hello')
    expect(JSON.stringify(bench.provider.requests)).not.toContain('Careful')
  })

  test('what the owner has told the agent beside the chat is not for others', async () => {
    await core.leave()
    const files = [{ path: 'safe-4711/AGENTS.md', bytes: 20 }]
    const told = { text: 'My door code is 4711.', files }
    core = await bench.core({ parts: { instructions: () => Promise.resolve(told) } })
    ada = await connect(core)
    bob = await connect(core)
    await share({})
    bench.provider.add(textAnswer('Hello.'))
    await prompt(ada, ADA, 'Hello')
    await load(bob, BOB)
    expect(JSON.stringify(ada.updates)).toContain('4711')
    expect(kinds(bob)).toContain('instructions')
    expect(JSON.stringify(bob.updates)).not.toContain('4711')
  })

  test('200 watchers get every event once, in order', async () => {
    await share({ kind: 'team', targetId: 't_all' })
    const watchers = await Promise.all(
      Array.from({ length: 200 }, async (_, index) => {
        const one = await connect(core)
        await load(one, {
          id: `u_${index}`,
          role: 'member',
          name: `W${index}`,
          teams: ['t_all'],
        })
        return one
      }),
    )
    bench.provider.add(textAnswer('Hello to all of you.'))
    await prompt(ada, ADA, 'Hello')
    const numbers = (one: TestClient) => heard(one).flatMap((event) => metaOf(event).seq ?? [])
    const all = (await log()).map((event) => metaOf(event).seq)
    for (const one of watchers) await expect.poll(() => numbers(one)).toEqual(all)
    await Promise.all(watchers.map((one) => one[Symbol.asyncDispose]()))
  })
})

test('whom it concerns gets a notice: of a share, a mention, an approval that they may answer', async () => {
  await share({ access: 'take_part', mayApprove: true })
  // Changed, and so no news.
  await share({ access: 'take_part', mayApprove: true, mode: 'yolo' })
  bench.provider.add(toolCalls([{ id: 'c', name: 'change', args: { key: 'k' } }]))
  await bob.request(EXT.comment, {
    user: BOB,
    sessionId,
    commentId: 'r_1',
    text: 'Look.',
    mentions: [ADA.id],
  })
  await ada.request(methods.agent.session.setMode, { sessionId, modeId: 'manual', ...by(ADA) })
  void prompt(ada, ADA, 'Change it.').catch(() => undefined)
  const told = async () =>
    (await core.store.notifications.after(0, 10)).map(({ userId, kind, about }) => [userId, kind, about])
  await expect.poll(told).toEqual([
    [BOB.id, 'shared', 'Ada'],
    [ADA.id, 'mentioned', 'Bob'],
    [ADA.id, 'approval', 'change'],
    [BOB.id, 'approval', 'change'],
  ])
  const unseen = { user: ADA, sessionId, commentId: 'r_2', text: 'Eve?', mentions: [EVE.id] }
  expect(await comesTo(ada.request(EXT.comment, unseen))).toBe('bad_request')
  await core.manager.get(ADA.id, sessionId).then((session) => session.stopAll())
})

test('impossible shares are refused with what to do', async () => {
  expect(await comesTo(share({ targetId: ADA.id }))).toBe('bad_request')
  expect(await comesTo(share({ expiresAt: Date.now() - 1 }))).toBe('bad_request')
})
