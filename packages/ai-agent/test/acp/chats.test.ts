/** Projects and marks over ACP, as our service asks for them. */
import { EXT } from '@sandlot/shared/acp/meta'
import type { Project } from '@sandlot/shared/chat/chats'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { instructionsFor } from '../../src/config/instructions.ts'
import { AgentBench, type Core } from '../support/agent-fixture.ts'
import { ADA, BOB, type TestClient, by, connect, newSession } from './test-client.ts'

const PROJECT: Project = {
  id: 'p',
  name: 'Garden',
  folder: 'plants/garden',
  instructions: 'Be brief.',
  mode: 'yolo',
  model: 'no such model',
}
let bench: AgentBench
let core: Core
let client: TestClient

beforeEach(async () => {
  bench = await AgentBench.start()
  core = await bench.core()
  client = await connect(core, { parts: { projects: core.store.chats } })
  await client.request(EXT.projects, { user: ADA, ask: { do: 'put', project: PROJECT } })
})
afterEach(async () => {
  await client[Symbol.asyncDispose]()
  await bench[Symbol.asyncDispose]()
})

test('a chat of a project has its folder and its mode, up to the ceiling; a model that is not there is not asked', async () => {
  const sessionId = await newSession(client, by(ADA, { project: 'p' }))
  expect(await core.store.sessions.get(sessionId)).toMatchObject({
    cwd: '/workspace/plants/garden',
    mode: 'yolo',
  })
  expect((await core.store.chats.projectOf(ADA.id, sessionId))?.id).toBe('p')
  const bounded = await newSession(client, by({ ...ADA, modeCeiling: 'manual' }, { project: 'p' }))
  expect((await core.store.sessions.get(bounded))?.mode).toBe('manual')
  const asked = await newSession(client, by(ADA, { project: 'p', mode: 'auto-edit' }))
  expect((await core.store.sessions.get(asked))?.mode).toBe('auto-edit')
  await expect(newSession(client, by(BOB, { project: 'p' }))).rejects.toThrow('You have no such project.')
})

test('its instructions come after one’s own', async () => {
  const told = await instructionsFor(ADA.id, {
    deployment: { operator: '', team: '' },
    ofUser: async () => 'Mine.',
    project: Promise.resolve(PROJECT),
    workspace: {
      awake: async () => undefined,
      rows: core.store.people.instructions,
      rulesOf: async () => [],
      now: Date.now,
      log: { warn: () => undefined },
    },
  })
  expect(told.text).toMatch(
    /^From the user, for all their conversations:\n\nMine\.\n\nFrom the user, for the project “Garden”:\n\n.*\/workspace\/plants\/garden[^]*Be brief\.$/,
  )
})

test('marks are for chats that one sees; of another’s it is not found, and it is in no project', async () => {
  const sessionId = await newSession(client, by(ADA))
  const mark = (user: typeof ADA, more: object) =>
    client.request(EXT.markChats, { user, marks: { sessionIds: [sessionId], ...more } })
  await expect(mark(BOB, { pinned: true })).rejects.toThrow('There is no such chat.')
  const share = { id: 'x', kind: 'person', targetId: BOB.id, access: 'watch', mode: 'manual' } as const
  const terms = { mayApprove: false, createdAt: 1, expiresAt: null }
  await core.store.shares.put(sessionId, { ...share, ...terms }, ADA.id)
  await mark(BOB, { pinned: true })
  await expect(mark(BOB, { project: 'p' })).rejects.toThrow('Only chats of your own')
  await mark(ADA, { project: 'p', archived: true })
  expect((await core.store.chats.marks(BOB.id, [sessionId])).get(sessionId)).toMatchObject({
    pinned: true,
    archived: false,
  })
  await client.request(EXT.projects, { user: ADA, ask: { do: 'remove', id: 'p' } })
  expect((await core.store.chats.marks(ADA.id, [sessionId])).get(sessionId)?.project).toBeNull()
})
