/** Agents as processes on one PostgreSQL: one resumes the work of another. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { methods } from '@agentclientprotocol/sdk'
import { type SessionEvent, seqOf } from '@sandlot/shared/chat/events'
import { openSessionReader, openSessionStore } from '@sandlot/storage/store/open'
import type { SessionReader } from '@sandlot/storage/sessions/store'
import { afterAll, expect, onTestFinished, test, vi } from 'vitest'
import { campaign, extent } from '../../../../test/campaign.ts'
import { nodeEnvironment } from '../../../../test/config.ts'
import { describeOnPostgres } from '../../../storage/test/support/on-postgres.ts'
import { openReplica } from '../../src/replicas/open-replica.ts'
import { sharedEngine } from '../../src/replicas/ownership.ts'
import type { ReplicaTimes } from '../../src/replicas/replica.ts'
import { deploymentKeys } from '@sandlot/shared/node/deployment-keys'
import { happened } from '../support/agent-fixture.ts'
import { AgentFolder, type AgentProcess, type SocketClient, connectTo } from '../support/agent-process.ts'
import {
  type FakeProvider,
  deltaChunk,
  sse,
  startFakeProvider,
  textAnswer,
} from '../support/fake-provider.ts'
import type { BusyReplica } from './busy-replica.ts'

vi.setConfig({ testTimeout: 90_000 })

const HALF = { steps: [sse(deltaChunk({ content: 'Half of' }))], after: 'hang' } as const

/** The other half comes later. */
const late = (delayMs: number) => ({
  steps: [
    sse(deltaChunk({ content: 'Half of' })),
    { delayMs },
    sse(deltaChunk({ content: ' it.' }, 'stop')),
    sse('[DONE]'),
  ],
})

describeOnPostgres('agents on one PostgreSQL', (postgres) => {
  const folder = new AgentFolder()
  afterAll(() => folder[Symbol.asyncDispose]())

  const connect = (id: string) => connectTo({ socket: join(folder.path, 'run', `agent-${id}.sock`) })

  const start = (id: string, url: string, provider: FakeProvider): AgentProcess =>
    folder.start({
      DATABASE_URL: url,
      SANDLOT_REPLICA: id,
      OPENAI_BASE_URL: provider.baseUrl,
      OPENAI_API_KEY: 'sk-of-the-test',
      OPENAI_MODEL: 'fake',
    })

  /** A new chat whose prompt has half of its answer. */
  async function halfAnswered(one: SocketClient): Promise<{ sessionId: string; lost: Promise<unknown> }> {
    const { sessionId } = await one.request(methods.agent.session.new, { cwd: '/workspace', mcpServers: [] })
    const lost = one
      .request(methods.agent.session.prompt, { sessionId, prompt: [{ type: 'text', text: 'go' }] })
      .catch((error: unknown) => error)
    await expect
      .poll(() => one.events.at(-1), { timeout: 10_000 })
      .toMatchObject({ content: { text: 'Half of' } })
    return { sessionId: String(sessionId), lost }
  }

  /** The log of a prompt that has ended once, in order, with one answer. */
  async function ended(reader: SessionReader, sessionId: string): Promise<SessionEvent[]> {
    const ends = async () => happened(await reader.log.read(sessionId), 'prompt_ended')
    await expect.poll(ends, { timeout: 20_000 }).toMatchObject([{ reason: 'completed' }])
    const log = await reader.log.read(sessionId)
    expect(log.map(seqOf)).toEqual(log.map((_, index) => index + 1))
    const answers = log.filter(({ sessionUpdate }) => sessionUpdate === 'agent_message_chunk')
    expect(answers).toMatchObject([{ content: { text: 'All of it.' } }])
    return log
  }

  test('killed, drained or stopped in the middle of an answer: another one goes on, and the earlier one stores nothing', async () => {
    const provider = await startFakeProvider([
      HALF,
      textAnswer('All of it.'),
      HALF,
      textAnswer('All of it.'),
      late(6_000),
      textAnswer('All of it.'),
    ])
    const url = await postgres.database('replicas')
    const ids = ['a', 'b', 'c', 'd']
    const processes = new Map<string, AgentProcess>()
    for (const id of ids) processes.set(id, start(id, url, provider))
    await Promise.all([...processes.values()].map((one) => one.logged('the agent is ready')))
    const reader = await openSessionReader(url)
    const processOf = (id: string | undefined): AgentProcess => {
      const found = processes.get(id ?? '')
      if (found === undefined) throw new Error(`there is no replica ${id}`)
      return found
    }
    const owner = () => reader.replicas.ownerOf('u_ada')
    const nextOwner = async (before: string | undefined): Promise<string> => {
      await expect
        .poll(async () => ![undefined, before].includes(await owner()), { timeout: 10_000 })
        .toBe(true)
      return (await owner()) ?? ''
    }

    // Killed.
    using one = await connect('a')
    const first = await halfAnswered(one)
    expect(await owner()).toBe('a')
    const [listed] = await reader.replicas.list()
    expect(listed).toMatchObject({ id: 'a', living: true, people: 1, draining: false })
    expect(listed?.url).toMatch(/^ws\+unix:\/\/\/.*\/run\/agent-a\.sock:\/acp$/)
    processOf('a').child.kill('SIGKILL')
    const killedAt = performance.now()
    const second = await nextOwner('a')
    await ended(reader, first.sessionId)
    expect(performance.now() - killedAt).toBeLessThan(10_000)

    // Drained: it stays, and says who has the person.
    using two = await connect(second)
    const drained = await halfAnswered(two)
    using other = await connect(second)
    processOf(second).child.kill('SIGUSR2')
    const third = await nextOwner(second)
    await ended(reader, drained.sessionId)
    await two.connection.closed
    const refused = other.request(methods.agent.session.new, { cwd: '/workspace', mcpServers: [] })
    await expect(refused).rejects.toMatchObject({ data: { code: 'not_owner' } })
    await processOf(second).logged('"drained"')
    expect(processOf(second).stderr.split('"draining: ')[1]).not.toContain('"level":40')

    // Stopped, and woken with the rest of its answer.
    using three = await connect(third)
    const stopped = await halfAnswered(three)
    processOf(third).child.kill('SIGSTOP')
    await nextOwner(third)
    const log = await ended(reader, stopped.sessionId)
    processOf(third).child.kill('SIGCONT')
    await processOf(third).logged('another')
    await three.connection.closed
    expect(await reader.log.read(stopped.sessionId)).toEqual(log)
    expect(await owner()).not.toBe(third)
    await reader.close()
    await provider.close()
  })

  test('the only one goes on at once when it is started again, and by itself when the database is back', async () => {
    const all = textAnswer('All of it.')
    const provider = await startFakeProvider([HALF, all, HALF, all, late(500), all])
    const url = await postgres.database('alone')
    const reader = await openSessionReader(url)
    let before = start('only', url, provider)
    await before.logged('the agent is ready')
    for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
      using one = await connect('only')
      const { sessionId } = await halfAnswered(one)
      before.child.kill(signal)
      expect(await before.ended).toBe(signal === 'SIGKILL' ? null : 0)
      const living = (await reader.replicas.list()).map(({ people }) => people)
      expect(living).toEqual(signal === 'SIGKILL' ? [1] : [])
      before = start('only', url, provider)
      await before.logged('"resumed":1')
      await ended(reader, sessionId)
    }
    using one = await connect('only')
    const { sessionId } = await halfAnswered(one)
    // The answer ends in between, and cannot be stored. A heartbeat may fail before that.
    await postgres.crash(async () => {
      await before.logged('the heartbeat of this replica failed')
      await sleep(1_000)
    })
    await ended(reader, sessionId)
    // An editor's agent relays to it.
    const editor = folder.start({ DATABASE_URL: url }, ['--stdio'])
    await editor.logged('an agent is running; relaying to it')
    await reader.close()
    await provider.close()
  })

  /** One that has nothing but people. */
  async function beginReplica(
    url: string,
    id: string,
    times: Partial<ReplicaTimes>,
    happenings: string[] = [],
  ) {
    const store = await openSessionStore(url)
    const keysFolder = join(folder.path, 'keys')
    const keys = deploymentKeys(keysFolder)
    const replica = await openReplica({
      database: url,
      id,
      address: { url: `ws://${id}` },
      version: '1',
      keys: { ...keys, sealing: [keys.key], folder: keysFolder },
      engine: () => Promise.resolve(undefined),
      rows: store.replicas,
      log: { info: () => undefined, warn: () => undefined },
      times,
    })
    if (replica === undefined) throw new Error('this is PostgreSQL')
    replica.onLost((userId) => void happenings.push(`${id} lost ${userId}`))
    await replica.begin({
      resume: async (userIds) => {
        happenings.push(...[...userIds].map((userId) => `${id} resumes ${userId}`))
        return userIds.size
      },
      release: async (userId) => void happenings.push(`${id} releases ${userId}`),
    })
    const close = async () => {
      await replica.drain()
      await replica.close()
      await store.close()
    }
    return { replica, store, close }
  }

  test('people of whom only a sandbox runs are spread over those that live when theirs dies', async () => {
    const url = await postgres.database('even')
    const begin = (id: string) => beginReplica(url, id, { heartbeat: 60_000, stale: 60_000 })
    const dead = await begin('dead')
    const people = Array.from({ length: 12 }, (_, index) => `p${index}`)
    await Promise.all(people.map((userId) => dead.replica.claim(userId)))
    const living = [await begin('a'), await begin('b'), await begin('c')] as const
    const [a, b, c] = living.map(({ replica, store }) => sharedEngine(replica, store.replicas))
    await Promise.all(['x', 'y', 'z'].map((userId) => living[0].replica.claim(userId)))
    const counts = async () =>
      (await living[0].store.replicas.list())
        .filter((replica) => replica.living)
        .map(({ people: has }) => has)
    expect([...((await a?.takeOver(people)) ?? [])]).toEqual([])
    // A late first heartbeat does not revive it.
    await postgres.rows(
      'even',
      "update sessions.replicas set heartbeat_at = 0, started_at = 0 where id = 'dead'",
    )
    await expect.poll(() => living.some(({ replica }) => replica.leads()), { timeout: 20_000 }).toBe(true)
    // Two look at the same moment, and one later.
    await Promise.all([a?.takeOver(people), b?.takeOver(people)])
    await c?.takeOver(people)
    // Each reads who is free and who has how many one after the other, and meanwhile another takes some.
    const spread = await counts()
    expect(spread.reduce((sum, has) => sum + has)).toBe(15)
    expect(Math.max(...spread) - Math.min(...spread)).toBeLessThanOrEqual(2)

    // The leader takes the people of another agent at its next poll.
    const leader = living.findIndex(({ replica }) => replica.leads())
    const engine = [a, b, c][leader]
    await engine?.takeOver(people)
    const other = living[(leader + 1) % 3]
    await other?.replica.drain()
    await other?.store.replicas.register({ id: other.replica.id, url: 'ws://it', version: '1' })
    const free = await living[0].store.replicas.freeOf(people)
    expect(free.length).toBeGreaterThan(0)
    await engine?.takeOver(people)
    expect(await living[0].store.replicas.freeOf(people)).not.toEqual([])
    // Those whose sandboxes are paused do the same, in the same round.
    await engine?.takeOver(['nobody'])
    await engine?.takeOver(people)
    expect(await living[0].store.replicas.freeOf(people)).toEqual([])
    for (const one of [...living, dead]) await one.close()
  })

  test('one that cannot renew its heartbeat has no people until it can; one that another replaces lets them go', async () => {
    const url = await postgres.database('beats')
    const happenings: string[] = []
    const begin = (id: string, times: Partial<ReplicaTimes>) => beginReplica(url, id, times, happenings)
    const quick = { heartbeat: 50, retry: 50, stale: 2_000 }
    const one = await begin('one', quick)
    await one.replica.claim('ann')
    expect([one.replica.has('ann'), one.replica.leads()]).toEqual([true, true])
    await postgres.crash(async () => {
      await expect.poll(() => one.replica.has('ann'), { timeout: 20_000 }).toBe(false)
      expect(one.replica.leads()).toBe(false)
      await expect(one.replica.claim('ann')).rejects.toMatchObject({ code: 'not_owner' })
    })
    await expect.poll(() => one.replica.has('ann'), { timeout: 20_000 }).toBe(true)

    const two = await begin('two', quick)
    await expect(two.replica.claim('ann')).rejects.toMatchObject({ code: 'not_owner', replica: 'one' })
    // A second process of the same name, which ends again.
    const other = await openSessionStore(url)
    await other.replicas.register({ id: 'one', url: 'ws://other', version: '1' })
    await expect.poll(() => happenings.slice(-2)).toEqual(['one releases ann', 'one lost ann'])
    expect(one.replica.has('ann')).toBe(false)
    await expect(one.replica.claim('ann')).rejects.toMatchObject({ code: 'not_owner' })
    await other.replicas.unregister()
    await other.close()
    expect(await two.replica.confirm('ann')).toBe(true)
    await expect.poll(() => happenings.at(-1)).toBe('two resumes ann')
    await two.close()
    expect(happenings.at(-1)).toBe('two lost ann')
    await one.close()
  })

  test('one whose thread is busy keeps its people; one whose thread is blocked loses them and acts no more', async () => {
    const url = await postgres.database('busy')
    const until = join(folder.path, 'until')
    const start = (of: Pick<BusyReplica, 'userId' | 'busy' | 'stuck'>) => {
      const turns = [3_000, 200, 3_000, 2_000, 500]
      const keys = join(folder.path, 'keys')
      const given: BusyReplica = { ...of, database: url, turns, until, keys, burns: campaign.full }
      const file = join(import.meta.dirname, 'busy-replica.ts')
      const child = spawn(process.execPath, ['--conditions=sandlot-source', file, JSON.stringify(given)], {
        env: nodeEnvironment(),
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      onTestFinished(() => void child.kill('SIGKILL'))
      const one = { ended: once(child, 'close'), said: '' }
      child.stdout.setEncoding('utf8').on('data', (text: string) => (one.said += text))
      return one
    }
    const other = await beginReplica(url, 'other', {})
    const busy = start({ userId: 'ann', busy: extent(10_000, 60_000), stuck: 10_000 })
    const blocked = start({ userId: 'bob', busy: 0, stuck: 500 })
    const areOwners = () => [busy.said, blocked.said].every((said) => said.includes('owns'))
    await expect.poll(areOwners, { timeout: 30_000 }).toBe(true)
    await expect.poll(() => other.replica.confirm('bob'), { timeout: 20_000 }).toBe(true)
    while (!busy.said.includes('owner\n')) expect(await other.replica.confirm('ann')).toBe(false)
    writeFileSync(until, '')
    await Promise.all([busy.ended, blocked.ended])
    expect(busy.said).toBe('owns\nstayed the owner\nacts as the owner\nstored\n')
    expect(blocked.said).toBe('owns\nstayed the owner\nacts no more\nrefused\n')
    await other.close()
  })
})
