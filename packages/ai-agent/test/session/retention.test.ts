/** Chats older than the retention time are removed, on a real store; a chat in use stays. */
import { RETAINED_FOR_EVER, type RetentionDays } from '@sandlot/shared/admin/retention'
import { expect, test } from 'vitest'
import { Retention } from '../../src/session/retention.ts'
import { AgentBench, type Core, heldTool } from '../support/agent-fixture.ts'
import { textAnswer, toolCalls } from '../support/fake-provider.ts'

const DAY_MS = 86_400_000
const ADA = { who: { id: 'u_ada', name: 'Ada' } }
const PNG = `iVBORw0KGgo${'A'.repeat(9_000)}`

/** In so many days. */
function retentionIn(
  core: Core,
  days: number,
  shared: { leads?: () => boolean; isElsewhere?: (userId: string) => Promise<boolean> } = {},
): Retention {
  const { store, manager } = core
  return new Retention({
    ...shared,
    rows: store.admin.retention,
    audit: store.admin.audit,
    isOpen: (id) => manager.removal.isOpen(id),
    expire: (chat) => manager.removal.expire(chat),
    release: (id) => manager.removal.release(id),
    now: () => Date.now() + days * DAY_MS,
    log: { info: () => undefined, warn: (_fields, message) => expect(message).toBe('') },
  })
}

const set = (core: Core, days: Partial<RetentionDays>) =>
  retentionIn(core, 0).answer({ do: 'put', days: { ...RETAINED_FOR_EVER, ...days }, revision: 0 }, ADA)

async function chat(core: Core, id: string): Promise<string> {
  const session = await core.manager.create({
    userId: 'u_ada',
    cwd: '/workspace',
    mode: 'yolo',
    sessionId: id,
  })
  const { done } = await session.prompt(`hello ${id}`)
  await done
  return id
}

const kinds = async (core: Core) => (await core.store.admin.audit.page({ limit: 50 })).map(({ what }) => what)

test('nothing goes where nothing is set', async () => {
  await using bench = await AgentBench.start([textAnswer('hi')])
  const core = await bench.core()
  await chat(core, 's_old')
  await retentionIn(core, 4_000).runWhenDue()
  expect(await core.store.sessions.get('s_old')).toBeDefined()
  expect(await kinds(core)).toEqual([])
})

test('old chats go; those that are pinned, lately shared, open or running stay, and lose nothing', async () => {
  const slow = heldTool('slow', true)
  await using bench = await AgentBench.start([
    ...['old', 'pinned', 'shared', 'open'].map((text) => textAnswer(text)),
    toolCalls([{ id: 'a', name: 'slow', args: { key: 'k' } }]),
    textAnswer('Done.'),
  ])
  const core = await bench.core({ tools: [slow.tool] })
  for (const id of ['s_old', 's_pinned', 's_shared', 's_open']) await chat(core, id)
  await core.store.chats.mark('u_bob', { sessionIds: ['s_pinned'], pinned: true }, Date.now())
  await core.store.shares.put(
    's_shared',
    {
      id: 'sh_1',
      kind: 'person',
      targetId: 'u_bob',
      access: 'watch',
      mode: 'manual',
      mayApprove: false,
      createdAt: Date.now() + 40 * DAY_MS,
      expiresAt: null,
    },
    'u_ada',
  )
  const open = await core.manager.get('u_ada', 's_open')
  const reader = open.subscribe(0)
  const running = await core.manager.create({
    userId: 'u_ada',
    cwd: '/',
    mode: 'yolo',
    sessionId: 's_running',
  })
  const { done } = await running.prompt('go')
  await slow.whenBegun(1)

  await set(core, { chats: 30 })
  const retention = retentionIn(core, 60)
  expect(
    await retention.answer({ do: 'preview', days: { ...RETAINED_FOR_EVER, chats: 30 } }, ADA),
  ).toMatchObject({
    kinds: [{ kind: 'chats', count: 1, open: 1 }],
  })
  await retention.runWhenDue()
  const left = await core.store.sessions.list('u_ada')
  expect(left.map(({ id }) => id).toSorted()).toEqual(['s_open', 's_pinned', 's_running', 's_shared'])
  expect((await core.store.log.read('s_open')).length).toBeGreaterThan(2)
  const [run] = await core.store.admin.audit.page({ limit: 1 })
  expect(run).toMatchObject({ what: 'retention_run', who: { id: 'sandlot' }, after: { chats: 1 } })
  slow.release('k')
  expect(await done).toMatchObject({ reason: 'completed' })

  // Once a day; the next day chats closed since are removed.
  reader.close()
  await retention.runWhenDue()
  expect(await core.store.sessions.get('s_open')).toBeDefined()
  await retentionIn(core, 62).runWhenDue()
  expect(await core.store.sessions.get('s_open')).toBeUndefined()
})

test('outputs and images go alone, and the chat keeps its shape', async () => {
  await using bench = await AgentBench.start([textAnswer('hi'), textAnswer('again')])
  const core = await bench.core()
  const { store } = core
  const session = await core.manager.create({ userId: 'u_ada', cwd: '/', mode: 'yolo', sessionId: 's' })
  const { done } = await session.prompt('look', { images: [{ mimeType: 'image/png', data: PNG }] })
  await done
  await store.outputs.append('s', 'c1', 0, Buffer.from('x'.repeat(50_000)))
  await store.log.append('s', [], { output: { callId: 'c1', totalBytes: 50_000, lines: 1 } })
  const before = await store.log.read('s')
  await set(core, { outputs: 10, images: 10 })
  const retention = retentionIn(core, 20)
  const { kinds: preview } = (await retention.answer(
    { do: 'preview', days: { ...RETAINED_FOR_EVER, outputs: 10, images: 10 } },
    ADA,
  )) as { kinds: { kind: string; count: number; bytes: number }[] }
  expect(preview).toMatchObject([
    { kind: 'outputs', count: 1, bytes: 50_000 },
    { kind: 'images', count: 1 },
  ])
  await retention.runWhenDue()
  expect(await store.outputs.get('s', 'c1')).toMatchObject({
    storedBytes: 0,
    totalBytes: 50_000,
    removed: true,
  })
  expect((await store.outputs.read('s', 'c1', 0, 10)).length).toBe(0)
  const after = await store.log.read('s')
  expect(JSON.stringify(after)).not.toContain('AAAAAAAA')
  expect(after.map(({ sessionUpdate }) => sessionUpdate)).toEqual(
    before.map(({ sessionUpdate }) => sessionUpdate),
  )
  // The model still gets a picture, and the chat continues.
  const again = await core.manager.get('u_ada', 's')
  expect(await (await again.prompt('and now?')).done).toMatchObject({ reason: 'completed' })
})

test('usage and lines of the audit log go by their age, and the chain holds', async () => {
  await using bench = await AgentBench.start([textAnswer('hi')])
  const core = await bench.core()
  await chat(core, 's')
  await set(core, { usage: 62, audit: 30 })
  for (let index = 0; index < 20; index++) await core.store.admin.audit.write({ ...ADA, what: 'secret_set' })
  await retentionIn(core, 70).runWhenDue()
  expect((await core.store.usage.spentSince('u_ada', 0, Date.now())).turns).toBe(0)
  expect(await core.store.sessions.get('s')).toBeDefined()
  expect(await kinds(core)).toEqual(['retention_run'])
  expect(await core.store.admin.audit.check()).toMatchObject({ lines: 1, anchor: { seq: 21 }, problems: [] })
})

test('a change by another administrator meanwhile is refused, and says so', async () => {
  await using bench = await AgentBench.start()
  const core = await bench.core()
  await set(core, { chats: 30 })
  await expect(set(core, { chats: 1 })).rejects.toMatchObject({ code: 'conflict' })
})

test('outputs and images go by their own age, in a chat that goes on', async () => {
  await using bench = await AgentBench.start([textAnswer('hi'), textAnswer('and now')])
  const core = await bench.core()
  const { store } = core
  const session = await core.manager.create({ userId: 'u_ada', cwd: '/', mode: 'yolo', sessionId: 's' })
  const images = [{ mimeType: 'image/png' as const, data: PNG }]
  await (
    await session.prompt('look', { images })
  ).done
  const old = Date.now() + 1
  const output = async (callId: string, at: number) => {
    await store.outputs.append('s', callId, 0, Buffer.from('x'.repeat(500)))
    const outcome = {
      promptId: 'p',
      callId,
      tool: 'echo',
      status: 'completed' as const,
      runMs: 1,
      waitMs: 0,
      at,
    }
    await store.log.append('s', [], { output: { callId, totalBytes: 500, lines: 1 }, outcome })
  }
  await output('early', old - 1)
  await output('late', old + 1)
  while (Date.now() <= old) await new Promise((resolve) => setTimeout(resolve, 1))
  await (
    await session.prompt('look again', { images })
  ).done
  expect(await store.admin.retention.aged('chats', old, 9)).toEqual([])
  expect(await store.admin.retention.aged('outputs', old, 9)).toMatchObject([{ id: 's', bytes: 500 }])
  expect(await store.admin.retention.removeOutputs('s', old)).toBe(1)
  expect(await store.outputs.get('s', 'early')).toMatchObject({ removed: true })
  expect((await store.outputs.read('s', 'late', 0, 10)).length).toBe(10)
  expect(await store.admin.retention.imagesOf('s', old)).toMatchObject({ count: 1 })
  expect(await store.admin.retention.removeImages('s', old)).toBe(1)
  for (const kind of ['outputs', 'images'] as const)
    expect(await store.admin.retention.aged(kind, old, 9)).toEqual([])
  const left = JSON.stringify(await store.log.read('s'))
  expect(left.split(PNG).length - 1).toBe(1)
})

test('of several agents the one that leads leaves the chats of others’ people to them, who apply it once a day too', async () => {
  await using bench = await AgentBench.start([textAnswer('one'), textAnswer('two')])
  const core = await bench.core()
  await chat(core, 's_one')
  await set(core, { chats: 30 })
  const last = async () => (await core.store.admin.retention.get()).last
  await retentionIn(core, 40, { isElsewhere: async (userId) => userId === 'u_ada' }).runWhenDue()
  expect(await core.store.sessions.get('s_one')).toBeDefined()
  const led = await last()
  expect(led).toMatchObject({ removed: {} })
  const owner = retentionIn(core, 40, { leads: () => false })
  await owner.runWhenDue()
  expect(await core.store.sessions.get('s_one')).toBeUndefined()
  expect(await last()).toEqual(led)
  // Not again on the same day.
  await chat(core, 's_two')
  await owner.runWhenDue()
  expect(await core.store.sessions.get('s_two')).toBeDefined()
}, 60_000)
