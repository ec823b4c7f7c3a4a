/** Two agents on one PostgreSQL behind one service: who is asked, and what is seen when a person goes from one to the other. */
import { join } from 'node:path'
import { openAccounts } from '@sandlot/storage/accounts/accounts'
import { openSessionStore } from '@sandlot/storage/store/open'
import { afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Replica } from '@sandlot/storage/replicas/replicas'
import type { Replicas } from '../../src/agent/agent-replicas.ts'
import { describeOnPostgres } from '../../../storage/test/support/on-postgres.ts'
import { type Browser, type Harness, Tab, addUser, setUp, startHarness, waitFor } from '../support/harness.ts'
import { ScriptedAgent } from '../support/scripted-agent.ts'
import { testFolder } from '../../../../test/folders.ts'

describeOnPostgres('two agents on one PostgreSQL', (postgres) => {
  let made = 0
  let folder: string
  beforeAll(async () => {
    // Migrated once, for all of them.
    const url = await postgres.database('empty')
    await (await openSessionStore(url)).close()
    await (await openAccounts(url, { secret: 'none', publicUrl: 'http://localhost' })).close()
  }, 60_000)

  let harness: Harness
  let agents: Record<string, ScriptedAgent>
  let owners: Map<string, string>
  let replicas: Replica[]
  let ann: Browser
  let bob: Browser

  const idOf = async (who: Browser): Promise<string> =>
    ((await (await who.get('/api/me')).json()) as { id: string }).id
  const has = (name: string): string[] => agents[name]?.received ?? []
  /** The next request of this person finds them there; what they read breaks off. */
  const move = async (who: Browser, to: string): Promise<void> => {
    const id = await idOf(who)
    const from = owners.get(id)
    owners.set(id, to)
    agents[from ?? '']?.cut()
  }

  beforeEach(async () => {
    const url = await postgres.database(`two_${++made}`, 'empty')
    folder = testFolder('agents')
    owners = new Map()
    agents = {}
    replicas = []
    for (const id of ['a', 'b']) {
      const socket = join(folder, `agent-${id}.sock`)
      const agent = await ScriptedAgent.start(url, socket)
      // The real one does this: a person without an owner is claimed by the agent that is asked.
      agent.has = (userId) => {
        if (!owners.has(userId)) owners.set(userId, id)
        return owners.get(userId) === id
      }
      agents[id] = agent
      const isUp = { version: '0.1.0', draining: false, living: true, people: 0 }
      replicas.push({ id, url: `ws+unix://${socket}:/acp`, ...isUp })
    }
    const reads: Replicas = {
      list: () => Promise.resolve(replicas),
      ownerOf: (userId) => Promise.resolve(owners.get(userId)),
    }
    harness = await startHarness(
      { sessions: url, accounts: url },
      { replicas: () => Promise.resolve(reads) },
      false,
    )
    ann = await setUp(harness)
    bob = await addUser(harness, ann, 'bob@example.org')
    owners.set(await idOf(ann), 'a')
    owners.set(await idOf(bob), 'b')
    await waitFor(async () => (await fetch(`${harness.service.url}/readyz`)).status === 200)
  })
  afterEach(async () => {
    await Promise.all(Object.values(agents).map((agent) => agent.close()))
    await harness.close()
  })

  const say = async (tab: Tab, text: string, more: object = {}): Promise<string> => {
    const requestId = `r_${text.replaceAll(' ', '_')}`
    tab.send({ type: 'ai_chat', requestId, text, whenBusy: 'queue', ...more })
    return (await tab.get('ai_chat_accepted', (frame) => frame.requestId === requestId)).sessionId
  }

  test('each person is at their own, and a shared chat at its owner’s', async () => {
    const [annTab, bobTab] = [await Tab.of(ann, harness.service.url), await Tab.of(bob, harness.service.url)]
    const chat = await say(annTab, 'hello')
    await say(bobTab, 'good day')
    expect(has('a').filter((one) => one.startsWith('prompt'))).toEqual([`prompt ${chat} hello`])
    expect(has('b').some((one) => one.endsWith('good day'))).toBe(true)

    const share = { kind: 'person', targetId: await idOf(bob), access: 'take_part' }
    expect((await ann.post(`/api/sessions/${chat}/shares`, share)).status).toBe(201)
    bobTab.send({ type: 'ai_chat_resume', sessionId: chat, after: 0 })
    await bobTab.get('ai_chat_caught_up', (frame) => frame.sessionId === chat)
    await say(bobTab, 'me too', { sessionId: chat })
    expect(has('a')).toContain(`prompt ${chat} me too`)
    await annTab.get('ai_chat_event', ({ event }) => JSON.stringify(event).includes('You said me too'))
    await Promise.all([annTab.close(), bobTab.close()])
  })

  test('people who are nobody’s go to agents in turn, each with all that they ask at once', async () => {
    owners.clear()
    for (const [id, agent] of Object.entries(agents))
      agent.has = (userId) => {
        asked.add(`${userId} ${id}`)
        if (!owners.has(userId)) owners.set(userId, id)
        return owners.get(userId) === id
      }
    const asked = new Set<string>()
    const tabs = await Promise.all([ann, ann, bob, bob].map((who) => Tab.of(who, harness.service.url)))
    await Promise.all(tabs.map((tab, index) => say(tab, `hello ${index}`)))
    const [annId, bobId] = [await idOf(ann), await idOf(bob)]
    expect(owners.get(annId)).not.toBe(owners.get(bobId))
    expect(asked).toEqual(new Set([annId, bobId].map((id) => `${id} ${owners.get(id)}`)))
    await Promise.all(tabs.map((tab) => tab.close()))
  })

  test('a person who goes to another agent reads on, and what they send goes there', async () => {
    const tab = await Tab.of(ann, harness.service.url)
    const chat = await say(tab, 'one')
    await tab.get('ai_chat_done')
    await move(ann, 'b')
    expect(await say(tab, 'two', { sessionId: chat })).toBe(chat)
    expect(has('b')).toContain(`prompt ${chat} two`)
    await tab.get('ai_chat_event', ({ event }) => JSON.stringify(event).includes('You said two'))
    // Silently: its connections stay, and the agent refuses.
    owners.set(await idOf(ann), 'a')
    expect(await say(tab, 'three', { sessionId: chat })).toBe(chat)
    await tab.get('ai_chat_event', ({ event }) => JSON.stringify(event).includes('You said three'))
    expect((await ann.patch(`/api/sessions/${chat}`, { title: 'Ours' })).status).toBe(204)
    expect(has('a')).toContain(`rename ${chat} Ours`)
    expect(tab.frames.filter(({ type }) => type === 'ai_chat_error')).toEqual([])
    const seqs = tab.eventsOf(chat).flatMap(({ _meta }) => _meta.sandlot.seq ?? [])
    expect(seqs).toEqual(seqs.map((_, index) => index + 1))
    await tab.close()
  })

  test('a dead agent’s people are served by the other one as soon as that is known', async () => {
    const tab = await Tab.of(ann, harness.service.url)
    const chat = await say(tab, 'one')
    await tab.get('ai_chat_done')
    await agents['a']?.drop()
    const sent = say(tab, 'two', { sessionId: chat })
    const listed = ann.get('/api/rules')
    replicas = replicas.map((one) => ({ ...one, living: one.id !== 'a' }))
    owners.delete(await idOf(ann))
    expect(await sent).toBe(chat)
    expect((await listed).status).toBe(200)
    expect(has('b')).toContain(`prompt ${chat} two`)
    expect(tab.frames.filter(({ type }) => type === 'ai_chat_error')).toEqual([])
    const { reasons } = (await (await fetch(`${harness.service.url}/readyz`)).json()) as { reasons: object[] }
    expect(reasons).toContainEqual({ part: 'agents', ok: true, message: '1 agent: b (0.1.0)' })
    await tab.close()
  })

  test('readers leave an agent that is dead to the others although its connections stand', async () => {
    const tab = await Tab.of(ann, harness.service.url)
    const chat = await say(tab, 'one')
    await tab.get('ai_chat_done')
    const id = await idOf(ann)
    replicas = replicas.map((one) => ({ ...one, living: one.id !== 'a' }))
    owners.set(id, 'b')
    await waitFor(() => has('b').some((one) => one.startsWith(`load ${chat}`)))
    expect(agents['a']?.connections).toBe(0)
    expect(await say(tab, 'two', { sessionId: chat })).toBe(chat)
    expect(tab.frames.filter(({ type }) => type === 'ai_chat_error')).toEqual([])
    await tab.close()
  })
})
