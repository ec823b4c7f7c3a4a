/** Two real agents on one PostgreSQL, one by its Unix socket, one by TLS, and a service that finds both. */
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openSessionReader } from '@sandlot/storage/store/open'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { AgentProcess } from '../../../ai-agent/test/support/agent-process.ts'
import { describeOnPostgres } from '../../../storage/test/support/on-postgres.ts'
import {
  ANN,
  type Browser,
  type Harness,
  Tab,
  addUser,
  browser,
  cookieOf,
  setUp,
  startHarness,
  waitFor,
} from '../support/harness.ts'

const TOKEN = 'a-token-of-this-test-alone'

describeOnPostgres('two agents of ours', (postgres) => {
  let folder: string
  let harness: Harness
  const agents: Record<string, AgentProcess> = {}
  let startAgent: (name: string, more?: Record<string, string>) => AgentProcess

  beforeAll(async () => {
    const url = await postgres.database('real')
    folder = await mkdtemp(join(tmpdir(), 'sandlot-real-'))
    const free = createServer().listen(0, '127.0.0.1')
    await once(free, 'listening')
    const { port } = free.address() as AddressInfo
    free.close()
    const env = { DATABASE_URL: url, SANDLOT_AGENT_TOKEN: TOKEN, LOG_LEVEL: 'info' }
    startAgent = (name, more = {}) =>
      (agents[name] = new AgentProcess(folder, { ...env, SANDLOT_REPLICA: name, ...more }, []))
    startAgent('one')
    startAgent('two', { SANDLOT_AGENT_LISTEN: `127.0.0.1:${port}` })
    harness = await startHarness({ sessions: url, accounts: url, agentToken: TOKEN }, {}, false)
    await Promise.all(Object.values(agents).map((agent) => agent.logged('the agent is ready')))
    await waitFor(async () =>
      (await (await fetch(`${harness.service.url}/readyz`)).text()).includes('2 agents'),
    )
  }, 120_000)
  afterAll(async () => {
    await harness?.close()
    await Promise.all(Object.values(agents).map((agent) => agent.kill()))
    await rm(folder, { recursive: true, force: true })
  })

  async function say(tab: Tab, requestId: string, sessionId?: string): Promise<string> {
    tab.send({ type: 'ai_chat', requestId, sessionId, text: 'hello', whenBusy: 'queue' })
    const accepted = await tab.get('ai_chat_accepted', (frame) => frame.requestId === requestId)
    await tab.get('ai_chat_done', (frame) => frame.promptId === accepted.promptId)
    return accepted.sessionId
  }

  test('people are at both, and those of an agent that drains go on at the other, unnoticed', async () => {
    const ann = await setUp(harness)
    const people = [ann, await addUser(harness, ann, 'bob@example.org')]
    const tabs = await Promise.all(people.map((who) => Tab.of(who, harness.service.url)))
    const chats: string[] = []
    for (const [index, tab] of tabs.entries()) chats.push(await say(tab, `r_a${index}`))
    const reader = await openSessionReader(harness.config.sessions)
    expect((await reader.replicas.list()).map(({ people: has }) => has)).toEqual([1, 1])
    await reader.close()
    agents['one']?.child.kill('SIGUSR2')
    await waitFor(async () =>
      (await (await fetch(`${harness.service.url}/readyz`)).text()).includes('drains'),
    )
    for (const [index, tab] of tabs.entries())
      expect(await say(tab, `r_b${index}`, chats[index])).toBe(chats[index])
    expect((await ann.get('/api/rules')).status).toBe(200)
    for (const [index, tab] of tabs.entries()) {
      expect(tab.frames.filter(({ type }) => type === 'ai_chat_error')).toEqual([])
      const seqs = tab.eventsOf(chats[index] ?? '').flatMap(({ _meta }) => _meta.sandlot.seq ?? [])
      expect(seqs).toEqual(seqs.map((_, at) => at + 1))
    }
    const { reasons } = (await (await fetch(`${harness.service.url}/readyz`)).json()) as {
      reasons: { part: string; message: string }[]
    }
    expect(reasons.find(({ part }) => part === 'agents')?.message).toMatch(
      /^2 agents: one \(.*, drains\), two \(/,
    )
    await Promise.all(tabs.map((tab) => tab.close()))
  })

  test('a shared chat whose owner is removed goes on at the agent of its new owner, on the pages that show it', async () => {
    await agents['one']?.kill()
    await startAgent('one').logged('the agent is ready')
    await waitFor(
      async () => !(await (await fetch(`${harness.service.url}/readyz`)).text()).includes('drains'),
    )
    const ann = browser(
      harness.service.url,
      cookieOf(
        await browser(harness.service.url, '').post('/api/sign-in', {
          email: ANN.email,
          password: ANN.password,
        }),
      ),
    )
    const idOf = async (who: Browser) => ((await (await who.get('/api/me')).json()) as { id: string }).id
    const owner = await addUser(harness, ann, 'eve@example.org')
    const reader = await addUser(harness, ann, 'cid@example.org')
    const theirs = await Tab.of(owner, harness.service.url)
    const sessionId = await say(theirs, 'r_c0')
    const agentOf = async (who: Browser) => {
      const rows = await openSessionReader(harness.config.sessions)
      const found = await rows.replicas.ownerOf(await idOf(who))
      await rows.close()
      return found
    }
    expect([await agentOf(ann), await agentOf(owner)]).toEqual(['two', 'one'])

    const share = { kind: 'person', access: 'take_part', mode: 'manual', mayApprove: false, expiresAt: null }
    const shared = await owner.post(`/api/sessions/${sessionId}/shares`, {
      ...share,
      targetId: await idOf(reader),
    })
    expect(shared.status).toBe(201)
    const page = await Tab.of(reader, harness.service.url)
    page.send({ type: 'ai_chat_resume', sessionId, after: 0 })
    await page.get('ai_chat_caught_up')
    const removed = await ann.delete(`/api/users/${await idOf(owner)}?data=keep&handOver=${await idOf(ann)}`)
    // There is no engine here: the chats are the first step of a removal, the sandbox is a later one.
    expect(await removed.json()).toMatchObject({
      code: 'not_ready',
      message: expect.stringContaining('sandbox could not be removed'),
    })

    const heir = await Tab.of(ann, harness.service.url)
    heir.send({ type: 'ai_chat_resume', sessionId, after: 0 })
    expect(await say(heir, 'r_c1', sessionId)).toBe(sessionId)
    // Both see what either says, without another resume.
    expect(await say(page, 'r_c2', sessionId)).toBe(sessionId)
    const { length } = heir.eventsOf(sessionId).filter(({ _meta }) => _meta.sandlot.seq !== undefined)
    for (const tab of [page, heir]) {
      const seqs = tab.eventsOf(sessionId).flatMap(({ _meta }) => _meta.sandlot.seq ?? [])
      expect(seqs).toEqual(Array.from({ length }, (_, at) => at + 1))
      expect(tab.frames.filter(({ type }) => type === 'ai_chat_error')).toEqual([])
    }
    await Promise.all([theirs, page, heir].map((tab) => tab.close()))
  })
})
