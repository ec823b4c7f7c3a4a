/**
 * Any interleaving of sharing, revoking, expiring, changes of teams, messages and loads: a reader without access gets nothing
 * from then on, and a reader with access gets each event once, in order.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { methods } from '@agentclientprotocol/sdk'
import { EXT } from '@sandlot/shared/acp/meta'
import { type SessionEvent, sandlotEventOf, seqOf } from '@sandlot/shared/chat/events'
import { accessBy } from '@sandlot/storage/shares/shares'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { AgentBench, type Core } from '../support/agent-fixture.ts'
import { textAnswer } from '../support/fake-provider.ts'
import { type TestClient, by, connect, newSession, text } from './test-client.ts'

const OWNER = { id: 'u_ada', role: 'member', name: 'Ada' } as const
const READERS = ['u_bob', 'u_cas'] as const
const TEAM = 't_data'
const EXPIRES_MS = 50
/** Milliseconds after which an ended share must be silent. */
const SILENT_MS = 100

type Reader = (typeof READERS)[number]
type Step =
  | { do: 'share'; with: Reader | 'team'; access: 'watch' | 'take_part'; expires: boolean }
  | { do: 'revoke'; of: Reader | 'team' }
  | { do: 'join' | 'leave' | 'load' | 'write'; who: Reader }

const reader = fc.constantFrom(...READERS)
const target = fc.constantFrom(...READERS, 'team' as const)
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    do: fc.constant('share' as const),
    with: target,
    access: fc.constantFrom('watch' as const, 'take_part' as const),
    expires: fc.boolean(),
  }),
  fc.record({ do: fc.constant('revoke' as const), of: target }),
  fc.record({ do: fc.constantFrom('join' as const, 'leave' as const), who: reader }),
  // More often than the others: there must be readers to lose something.
  fc.record({ do: fc.constant('load' as const), who: reader }),
  fc.record({ do: fc.constantFrom('load' as const, 'write' as const), who: reader }),
)
/** Those of a group are asked for at once. */
const groups = fc.array(fc.array(step, { minLength: 1, maxLength: 3 }), { minLength: 2, maxLength: 6 })

interface Following {
  who: Reader
  client: TestClient
}

class Play {
  readonly #bench: AgentBench
  readonly #core: Core
  readonly #ada: TestClient
  readonly #sessionId: string
  readonly #teams: Map<string, readonly string[]>
  readonly #following: Following[] = []
  #probes = 0

  private constructor(
    bench: AgentBench,
    core: Core,
    ada: TestClient,
    sessionId: string,
    teams: Play['teams'],
  ) {
    this.#bench = bench
    this.#core = core
    this.#ada = ada
    this.#sessionId = sessionId
    this.#teams = teams
  }

  get teams(): Map<string, readonly string[]> {
    return this.#teams
  }

  static async begin(bench: AgentBench): Promise<Play> {
    const teams = new Map<string, readonly string[]>()
    const core = await bench.core({ parts: { teamsOf: (id) => teams.get(id) } })
    const ada = await connect(core)
    return new Play(bench, core, ada, await newSession(ada, by(OWNER)), teams)
  }

  async take(group: readonly Step[]): Promise<void> {
    await Promise.all(group.map((one) => this.#take(one)))
    // Shares that expire within the group have expired, and lost ones are silent.
    await sleep(group.some((one) => one.do !== 'load' && one.do !== 'write') ? SILENT_MS : 0)
    await this.#probe()
  }

  async end(): Promise<void> {
    for (const { client } of this.#following) await client[Symbol.asyncDispose]()
    await this.#ada[Symbol.asyncDispose]()
    await this.#core.leave()
  }

  #user(id: Reader): object {
    return { id, role: 'member', name: id, teams: this.#teams.get(id) ?? [] }
  }

  async #take(one: Step): Promise<void> {
    switch (one.do) {
      case 'share':
        return this.#share(one)
      case 'revoke':
        return this.#revoke(one.of)
      case 'join':
      case 'leave':
        this.#teams.set(one.who, one.do === 'join' ? [TEAM] : [])
        this.#core.manager.shares.recheckUser(one.who)
        return
      case 'load':
        return this.#load(one.who)
      case 'write':
        return this.#write(one.who)
    }
  }

  async #share({ with: whom, access, expires }: Extract<Step, { do: 'share' }>): Promise<void> {
    const about = whom === 'team' ? { kind: 'team', targetId: TEAM } : { kind: 'person', targetId: whom }
    const expiresAt = expires ? Date.now() + EXPIRES_MS : null
    const share = { ...about, access, mode: 'manual', mayApprove: false, expiresAt }
    // On a busy machine it may have ended before it is asked for.
    await refused(this.#ask(EXT.shares, { ask: { do: 'put', share } }))
  }

  async #revoke(of: Reader | 'team'): Promise<void> {
    const shares = await this.#core.store.shares.of(this.#sessionId)
    const found = shares.find(({ targetId }) => targetId === (of === 'team' ? TEAM : of))
    // Another step of the group may have been faster.
    if (found !== undefined) await refused(this.#ask(EXT.shares, { ask: { do: 'remove', id: found.id } }))
  }

  async #load(who: Reader): Promise<void> {
    const client = await connect(this.#core)
    const params = { sessionId: this.#sessionId, cwd: '/workspace', mcpServers: [] }
    const load = client.request(methods.agent.session.load, {
      ...params,
      ...by(this.#user(who), { after: 0 }),
    })
    const isRefused = await refused(load)
    if (isRefused) {
      expect(client.updates).toEqual([])
      await client[Symbol.asyncDispose]()
    } else this.#following.push({ who, client })
  }

  async #write(who: Reader): Promise<void> {
    this.#bench.provider.add(textAnswer('Yes.'))
    const params = { sessionId: this.#sessionId, prompt: text('Hello?'), ...by(this.#user(who)) }
    await refused(this.#ada.request(methods.agent.session.prompt, params))
  }

  #ask(method: string, more: object): Promise<Record<string, unknown>> {
    return this.#ada.request(method, { user: OWNER, sessionId: this.#sessionId, ...more })
  }

  /** One more event, alone: who gets it, and who does not. */
  async #probe(): Promise<void> {
    const commentId = `probe_${this.#probes++}`
    const shares = await this.#core.store.shares.of(this.#sessionId)
    const counts = new Map(this.#following.map(({ client }) => [client, client.updates.length]))
    await this.#ask(EXT.comment, { commentId, text: 'Still there?', mentions: [] })
    for (const { who, client } of this.#following) {
      const mayRead =
        accessBy(shares, { id: who, teams: this.#teams.get(who) ?? [] }, Date.now()) !== undefined
      const isClosed = client.others.some(({ method }) => method === EXT.sessionClosed)
      if (mayRead && !isClosed) {
        while (!eventsOf(client).some((event) => isComment(event, commentId))) await sleep(1)
      } else {
        expect(isClosed).toBe(true)
        await client.request(EXT.status, {})
        expect(client.updates.length).toBe(counts.get(client))
      }
      const seqs = eventsOf(client).flatMap((event) => seqOf(event) ?? [])
      expect(seqs).toEqual(seqs.map((_, index) => index + 1))
    }
  }
}

const eventsOf = (client: TestClient): SessionEvent[] =>
  client.updates.map(({ update }) => update as SessionEvent)

function isComment(event: SessionEvent, commentId: string): boolean {
  const happened = sandlotEventOf(event)
  return happened?.type === 'comment' && happened.commentId === commentId
}

/** True if it was refused, by a code of ours. */
async function refused(asked: Promise<unknown>): Promise<boolean> {
  try {
    await asked
    return false
  } catch (error) {
    expect(['not_found', 'forbidden', 'bad_request']).toContain(
      (error as { data?: { code?: string } }).data?.code,
    )
    return true
  }
}

test('property: each event once to who may read, none to who may not', { timeout: 60_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(groups, async (all) => {
      const bench = await AgentBench.start()
      const play = await Play.begin(bench)
      try {
        for (const group of all) await play.take(group)
      } finally {
        await play.end()
        // Answers that no prompt asked for are left over.
        await bench[Symbol.asyncDispose]().catch(() => undefined)
      }
    }),
    { numRuns: 12 },
  )
})
