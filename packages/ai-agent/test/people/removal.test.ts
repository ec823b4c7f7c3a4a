/** Somebody is removed: with a real store, a real sandbox and prompts that run. */
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { EXT } from '@sandlot/shared/acp/meta'
import type { RemovedData } from '@sandlot/shared/account/api'
import { expect, test } from 'vitest'
import { Removals } from '../../src/people/removal.ts'
import { ADA, by, connect, newSession as asked, text } from '../acp/test-client.ts'
import { AgentBench, type Core, type Held, heldTool } from '../support/agent-fixture.ts'
import { textAnswer, toolCalls } from '../support/fake-provider.ts'
import { openLocalSandboxes } from '../tools/local-sandboxes.ts'
import { methods } from '@agentclientprotocol/sdk'

type RemovalParts = Parameters<Removals['remove']>[2]

const ID = ADA.id
const held = (key: string) => toolCalls([{ id: `c_${key}`, name: 'held', args: { key } }])

async function openCore(bench: AgentBench, tool: Held): Promise<{ core: Core; removals: Removals }> {
  let removals = new Removals(new Set())
  const core = await bench.core({
    tools: [tool.tool],
    parts: { isRemoved: (userId) => removals.has(userId) },
  })
  removals = new Removals(await core.store.people.known.removed())
  return { core, removals }
}

const partsFor = (
  core: Core,
  steps: string[] = [],
  failsAt?: string,
  lines: unknown[] = [],
): RemovalParts => {
  const step = async <T>(name: string, work: () => Promise<T>): Promise<T> => {
    steps.push(name)
    if (name === failsAt) throw new Error(`cut off at ${name}`)
    return work()
  }
  return {
    rows: {
      remove: (id, at) => step('rows', () => core.store.people.known.remove(id, at)),
      purge: (id) => core.store.people.known.purge(id),
    },
    endSessions: (id, data) => step('sessions', () => core.manager.removal.endAllOf(id, data)),
    audit: (line) => void lines.push(line),
    endServers: () => step('servers', () => Promise.resolve()),
    removeSandbox: () => step('sandbox', () => Promise.resolve()),
    now: () => 1,
  }
}

test('what runs is stopped, and nothing of theirs begins any more; others go on', async () => {
  await using bench = await AgentBench.start([held('a'), textAnswer('not seen'), textAnswer('hello bob')])
  const tool = heldTool('held', false)
  const { core, removals } = await openCore(bench, tool)
  const session = await core.manager.create({ userId: ID, cwd: '/workspace', mode: 'yolo' })
  const { done } = await session.prompt('go')
  await tool.whenBegun(1)
  await removals.remove(ID, 'keep', partsFor(core))
  expect(await done).toMatchObject({ reason: 'cancelled' })
  expect(await core.store.sessions.unfinished()).toEqual([])
  // Kept, for whoever runs this Sandlot.
  expect((await core.store.sessions.get(session.id))?.userId).toBe(ID)
  await expect(core.manager.get(ID, session.id)).rejects.toMatchObject({ code: 'not_found' })
  await expect(core.manager.prompt(ID, session.id, 'more', {})).rejects.toMatchObject({ code: 'not_found' })
  const another = core.manager.create({ userId: ID, cwd: '/workspace', mode: 'yolo' })
  await expect(another).rejects.toMatchObject({ code: 'forbidden' })
  await expect(
    core.manager.create({ userId: 'u_bob', cwd: '/workspace', mode: 'yolo' }),
  ).resolves.toBeDefined()
})

test('with purge every session goes, however many there are', async () => {
  await using bench = await AgentBench.start([held('a')])
  const tool = heldTool('held', false)
  const { core, removals } = await openCore(bench, tool)
  for (let n = 0; n < 230; n += 1)
    await core.store.sessions.create({ id: `s${n}`, userId: ID, cwd: '/workspace', mode: 'yolo', at: 5 })
  await core.store.sessions.create({ id: 'bobs', userId: 'u_bob', cwd: '/workspace', mode: 'yolo', at: 5 })
  await (await core.manager.get(ID, 's7')).prompt('go')
  await tool.whenBegun(1)
  const lines: unknown[] = []
  await removals.remove(ID, 'purge', partsFor(core, [], undefined, lines))
  expect(await core.store.sessions.list(ID)).toEqual([])
  expect(await core.store.sessions.list('u_bob')).toHaveLength(1)
  // One line for all of them, and none for doing it again.
  await removals.remove(ID, 'purge', partsFor(core, [], undefined, lines))
  expect(lines).toMatchObject([{ what: 'chat_deleted', whom: { id: ID }, count: 230 }])
})

test('cut off anywhere it is ended by doing it again, and a start in between takes up nothing of theirs', async () => {
  const order = ['rows', 'sessions', 'servers', 'sandbox', 'sessions', 'rows']
  for (const failsAt of ['rows', 'sessions', 'servers', 'sandbox']) {
    for (const data of ['keep', 'purge'] satisfies RemovedData[]) {
      await using bench = await AgentBench.start([held('a'), held('b')])
      const first = heldTool('held', false)
      const before = await openCore(bench, first)
      const { id } = await before.core.manager.create({ userId: ID, cwd: '/workspace', mode: 'yolo' })
      await before.core.manager.prompt(ID, id, 'go', {})
      await first.whenBegun(1)
      const cut = before.removals.remove(ID, data, partsFor(before.core, [], failsAt))
      await expect(cut).rejects.toThrow(/^\w.* could not be .*: cut off at/)
      await before.core.leave()

      const { core, removals } = await openCore(bench, heldTool('held', false))
      const resumed = await core.manager.resumeUnfinished()
      // Only what was never stored as removed, or what had not been stopped, is unfinished; of the latter nothing is taken up.
      expect(resumed, failsAt).toBe(failsAt === 'rows' ? 1 : 0)
      const steps: string[] = []
      await removals.remove(ID, data, partsFor(core, steps))
      expect(steps).toEqual(order)
      expect(await core.store.sessions.unfinished()).toEqual([])
      expect(await core.store.sessions.list(ID)).toHaveLength(data === 'purge' ? 0 : 1)
    }
  }
})

test('one that never ends holds up nobody else’s; of one person they are done in order', async () => {
  const removals = new Removals(new Set())
  const engine = Promise.withResolvers<void>()
  const ended: string[] = []
  const parts: RemovalParts = {
    rows: { remove: async () => undefined, purge: async () => undefined },
    audit: () => undefined,
    endSessions: async () => 0,
    endServers: async () => undefined,
    removeSandbox: async (userId, data) => {
      if (userId === ID && data === 'keep') await engine.promise
      ended.push(`${userId} ${data}`)
    },
    now: () => 1,
  }
  const first = removals.remove(ID, 'keep', parts)
  const then = removals.remove(ID, 'purge', parts)
  await removals.remove('u_bob', 'keep', parts)
  expect(ended).toEqual(['u_bob keep'])
  engine.resolve()
  await Promise.all([first, then])
  expect(ended).toEqual(['u_bob keep', `${ID} keep`, `${ID} purge`])
})

test('only our own service may say so', async () => {
  await using bench = await AgentBench.start()
  const { core, removals } = await openCore(bench, heldTool('held', false))
  const parts = {
    removePerson: (userId: string, data: RemovedData) => removals.remove(userId, data, partsFor(core)),
  }
  await using editor = await connect(core, { parts, capabilities: {} })
  const ask = { userId: ID, data: 'purge' }
  await expect(editor.request(EXT.removePerson, ask)).rejects.toMatchObject({
    data: { code: 'not_implemented' },
  })
  await using service = await connect(core, { parts })
  const sessionId = await asked(service)
  expect(await service.request(EXT.removePerson, ask)).toEqual({})
  await expect(
    service.request(methods.agent.session.prompt, { sessionId, prompt: text('hi'), ...by(ADA) }),
  ).rejects.toMatchObject({ data: { code: 'not_found' } })
})

test('whoever asked hears which part is left, and the log has the rest', async () => {
  await using bench = await AgentBench.start()
  const { core, removals } = await openCore(bench, heldTool('held', false))
  const parts = {
    removePerson: (userId: string, data: RemovedData) =>
      removals.remove(userId, data, partsFor(core, [], 'sandbox')),
  }
  await using service = await connect(core, { parts })
  await expect(service.request(EXT.removePerson, { userId: ID, data: 'keep' })).rejects.toMatchObject({
    message: 'Their sandbox could not be removed: cut off at sandbox',
    data: { code: 'not_ready' },
  })
  expect(core.warnings).toMatchObject([
    { fields: { userId: ID, data: 'keep', stack: expect.stringContaining('Error: cut off at sandbox') } },
  ])
})

test('their sandbox is gone for good, and their files where that is said', async () => {
  await using bench = await AgentBench.start()
  const local = await openLocalSandboxes()
  try {
    const { core, removals } = await openCore(bench, heldTool('held', false))
    const { sandboxes } = local
    const parts = { ...partsFor(core), removeSandbox: sandboxes.remove.bind(sandboxes) }
    await (await sandboxes.acquire(ID)).files.write('kept', Buffer.from('x'))
    await removals.remove(ID, 'keep', parts)
    expect(await sandboxes.status(ID)).toMatchObject({ state: 'absent', slot: expect.any(String) })
    await removals.remove(ID, 'purge', parts)
    expect(await sandboxes.status(ID)).toEqual({ state: 'absent', connected: false, steps: [] })
  } finally {
    await local.dispose()
  }
})

test('with purge nothing is left of a person in the database but the audit’s line', async () => {
  await using bench = await AgentBench.start([textAnswer('I like zebrafish'), textAnswer('for bob')])
  const { core, removals } = await openCore(bench, heldTool('held', false))
  const { store, manager } = core
  for (const [userId, word] of [
    [ID, 'zebrafish'],
    ['u_bob', 'other'],
  ] as const) {
    const session = await manager.create({ userId, cwd: '/workspace', mode: 'yolo' })
    await (
      await session.prompt(`${word} please`)
    ).done
    await session.rename(`About ${word}`)
    await store.outputs.append(session.id, 'c1', 0, Buffer.from(word))
    await store.people.instructions.put(userId, `${word} first`, 1)
    await store.people.known.put(userId, { email: `${word}@example.org`, teams: [] })
    await store.chats.putProject(userId, {
      id: `p_${word}`,
      name: word,
      folder: '',
      instructions: '',
      mode: null,
      model: null,
    })
  }
  await store.admin.audit.write({ who: { id: ID, name: 'zebrafish' }, what: 'secret_set' })
  expect(tablesWith(bench.folder, 'zebrafish')).toContain('events')
  await removals.remove(ID, 'purge', partsFor(core))
  expect(tablesWith(bench.folder, 'zebrafish')).toEqual(['audit'])
  // The id alone is kept: it is given to no other person.
  expect(tablesWith(bench.folder, ID)).toEqual(['audit', 'removed_people'])
  expect(tablesWith(bench.folder, 'u_bob')).toContain('usage')
  expect(await store.admin.audit.check()).toMatchObject({ problems: [] })
})

/** Also of the bytes of outputs and of the search index. */
function tablesWith(folder: string, word: string): string[] {
  const file = new DatabaseSync(join(folder, 'sessions.db'), { readOnly: true, readBigInts: true })
  try {
    const tables = file.prepare("select name from sqlite_master where type = 'table'").all()
    return tables
      .map(({ name }) => String(name))
      .filter((name) =>
        file
          .prepare(`select * from "${name}"`)
          .all()
          .some((row) =>
            Object.values(row).some((value) =>
              (value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : String(value)).includes(
                word,
              ),
            ),
          ),
      )
      .toSorted()
  } finally {
    file.close()
  }
}
