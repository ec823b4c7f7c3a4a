/** Two real agents on one PostgreSQL, one by its Unix socket, one by TLS, and a service that finds both. */
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openSessionReader } from '@sandlot/storage/sessions/open'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { AgentProcess } from '../../../ai-agent/test/support/agent-process.ts'
import { describeOnPostgres } from '../../../storage/test/support/on-postgres.ts'
import { type Harness, Tab, addUser, setUp, startHarness, waitFor } from '../support/harness.ts'

const TOKEN = 'a-token-of-this-test-alone'

describeOnPostgres('two agents of ours', (postgres) => {
  let folder: string
  let harness: Harness
  const agents: Record<string, AgentProcess> = {}

  beforeAll(async () => {
    const url = await postgres.database('real')
    folder = await mkdtemp(join(tmpdir(), 'sandlot-real-'))
    const free = createServer().listen(0, '127.0.0.1')
    await once(free, 'listening')
    const { port } = free.address() as AddressInfo
    free.close()
    const env = { DATABASE_URL: url, SANDLOT_AGENT_TOKEN: TOKEN, LOG_LEVEL: 'info' }
    agents['one'] = new AgentProcess(folder, { ...env, SANDLOT_REPLICA: 'one' }, [])
    const secure = { SANDLOT_REPLICA: 'two', SANDLOT_AGENT_LISTEN: `127.0.0.1:${port}` }
    agents['two'] = new AgentProcess(folder, { ...env, ...secure }, [])
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

  test('people are at both, and those of an agent that drains go on at the other, unnoticed', async () => {
    const ann = await setUp(harness)
    const people = [ann, await addUser(harness, ann, 'bob@example.org')]
    const tabs = await Promise.all(people.map((who) => Tab.of(who, harness.service.url)))
    const say = async (tab: Tab, requestId: string, sessionId?: string): Promise<string> => {
      tab.send({ type: 'ai_chat', requestId, sessionId, text: 'hello', whenBusy: 'queue' })
      const accepted = await tab.get('ai_chat_accepted', (frame) => frame.requestId === requestId)
      await tab.get('ai_chat_done', (frame) => frame.promptId === accepted.promptId)
      return accepted.sessionId
    }
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
})
