/** Cases of failures; docs/growing.md has the same rows for users. */
import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { messageOf } from '@sandlot/shared/base/errors'
import { type SessionEvent, sandlotEventOf, seqOf } from '@sandlot/shared/chat/events'
import { randomText } from '@sandlot/shared/base/ids'
import { openSessionReader } from '../../packages/storage/src/store/open.ts'
import { expect } from 'vitest'
import { eventually } from '../e2e/processes.ts'
import type { Client, Said } from './client.ts'
import type { World } from './world.ts'

/** While a command prints; or after its START has left for the sandbox, whose answer does not come. */
const MOMENTS = ['a command prints', 'between START and its answer'] as const
type Moment = (typeof MOMENTS)[number]

export interface Row {
  /** Name in docs/growing.md. */
  victim: string
  /** With a single agent and service too. */
  alone?: true
  /** The last commits are lost, and a reader may have seen them. */
  loses?: true
  /** Nothing can be stored for a while: the prompt may end with an error, and the command with it. */
  mayEnd?: true
  /** Why it cannot be done here; undefined: it can. */
  missing?: string | undefined
  /** Before anything runs. */
  prepare?(world: World): Promise<void>
  inject(world: World, running: Running): Promise<void>
  /** When the prompt has ended and all agents run. */
  verify?(world: World, running: Running): Promise<void>
}

export interface Running {
  /** The id of the person. */
  person: string
  client: Client
  /** The number of the agent that has them. */
  owner: number
}

/** Longer than an agent may be silent. */
export const SILENCE_MS = 9_000
const STARTS_SOON_MS = 1_000
const FULL_MS = 4_000
const CLAIM = 'insert into owners'

export const agentOf = (world: World, number: number) => {
  const agent = world.sandlot.agents[number]
  const proxies = world.proxies[number]
  if (agent === undefined || proxies === undefined) throw new Error(`there is no agent ${number}`)
  return { ...agent, ...proxies }
}
const otherOf = (world: World, { owner }: Running) => agentOf(world, owner === 0 ? 1 : 0)

/** Debian's place. Timers go on as they do. */
const FAKETIME = '/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1'
const CLOCK = { LD_PRELOAD: FAKETIME, FAKETIME_DONT_FAKE_MONOTONIC: '1' }

export async function restartAgents(
  { sandlot: { agents } }: World,
  clock: (number: number) => Record<string, string>,
): Promise<void> {
  await Promise.all(
    agents.map(async (agent, number) => {
      await agent.end('SIGKILL')
      await agent.start(clock(number))
    }),
  )
}

export const ROWS: readonly Row[] = [
  {
    victim: 'an agent in a turn',
    alone: true,
    inject: (world, { owner }) => agentOf(world, owner).end('SIGKILL'),
  },
  {
    victim: 'an agent in a claim',
    async inject(world, running) {
      const other = otherOf(world, running)
      const claimed = other.database.holdAnswerTo(CLAIM, running.person)
      await agentOf(world, running.owner).end('SIGKILL')
      await claimed
      await other.end('SIGKILL')
      other.database.restore()
      await other.start()
    },
  },
  {
    victim: 'an agent in a handover',
    async inject(world, running) {
      const other = otherOf(world, running)
      const claimed = other.database.holdAnswerTo(CLAIM, running.person)
      agentOf(world, running.owner).signal('SIGUSR2')
      await claimed
      await other.end('SIGKILL')
      other.database.restore()
      await other.start()
    },
  },
  {
    victim: 'an agent that drains',
    async inject(world, { owner }) {
      const agent = agentOf(world, owner)
      const begun = agent.database.holdAnswerTo('set "draining"')
      agent.signal('SIGUSR2')
      await begun
      await agent.end('SIGKILL')
      agent.database.restore()
    },
  },
  {
    victim: 'a service',
    alone: true,
    async inject({ sandlot: { services } }) {
      await services[0]?.end('SIGKILL')
      await services[0]?.start()
    },
  },
  {
    victim: 'PostgreSQL, restarted',
    alone: true,
    mayEnd: true,
    async inject({ postgres }) {
      await postgres.end('SIGINT')
      await postgres.start()
    },
  },
  {
    victim: 'PostgreSQL, killed',
    alone: true,
    mayEnd: true,
    async inject({ postgres }) {
      await postgres.end('SIGKILL')
      await sleep(STARTS_SOON_MS)
      await postgres.start()
    },
  },
  {
    victim: 'PostgreSQL, failed over without its last commits',
    alone: true,
    loses: true,
    mayEnd: true,
    async inject({ postgres }) {
      await postgres.copy()
      await sleep(STARTS_SOON_MS)
      await postgres.failOver()
    },
  },
  {
    victim: 'PostgreSQL, failed over to before a change of owner',
    loses: true,
    mayEnd: true,
    async inject(world, { owner, person }) {
      const { postgres } = world
      await postgres.copy()
      await agentOf(world, owner).end('SIGKILL')
      await eventually('another owner', () => world.ownerOf(person))
      await sleep(STARTS_SOON_MS)
      await postgres.failOver()
    },
  },
  {
    victim: 'PostgreSQL, failed over without the start and the end of a command, and an agent',
    loses: true,
    mayEnd: true,
    async inject(world, { client, owner }) {
      const { postgres, proxies, database } = world
      // This command is to run at once.
      for (const { engine } of proxies) engine.restore()
      const said = client.say('run echo once >> lost.txt', { mode: 'manual' })
      await said.saw('approval_asked')
      await postgres.copy()
      await answer(client, 0, said)
      expect(await linesOf(client, 'lost.txt')).toEqual(['once'])
      await postgres.failOver()
      await agentOf(world, owner).end('SIGKILL')
      // Asked again, because the answer is lost too.
      await answer(client, 0, said)
      await eventually('the end of the prompt', () => hasEnded(database, said.sessionId), 60_000)
      expect(await linesOf(client, 'lost.txt')).toEqual(['once'])
    },
  },
  {
    victim: 'an agent’s connection to the database, cut',
    alone: true,
    mayEnd: true,
    async inject(world, { owner }) {
      const { database } = agentOf(world, owner)
      database.cut()
      await sleep(SILENCE_MS)
      database.restore()
    },
  },
  {
    victim: 'the same, silent',
    alone: true,
    mayEnd: true,
    async inject(world, { owner }) {
      const { database } = agentOf(world, owner)
      database.hold()
      await sleep(SILENCE_MS)
      database.restore()
    },
  },
  {
    victim: 'an agent that freezes, then resumes as owner',
    async inject(world, { owner }) {
      const agent = agentOf(world, owner)
      agent.signal('SIGSTOP')
      await sleep(SILENCE_MS)
      agent.signal('SIGCONT')
    },
  },
  {
    victim: 'connections of PostgreSQL, all taken',
    alone: true,
    mayEnd: true,
    async inject({ postgres }) {
      const release = await postgres.takeAll()
      await sleep(SILENCE_MS)
      await release()
    },
  },
  {
    victim: 'the disk of PostgreSQL, full',
    alone: true,
    mayEnd: true,
    async inject({ fillDisk, postgres, rows }) {
      const makeRoom = fillDisk()
      // Its log continues in a new file, for which there is no space: the server crashes, and may end.
      await rows('select pg_switch_wal()').catch(() => undefined)
      await sleep(FULL_MS)
      makeRoom()
      await postgres.start()
    },
  },
  {
    victim: 'an agent, with clocks 10 minutes ahead of and behind the database’s',
    missing: existsSync(FAKETIME) ? undefined : 'clocks are moved by libfaketime (apt install faketime)',
    prepare: (world) =>
      restartAgents(world, (number) => ({ ...CLOCK, FAKETIME: number === 0 ? '+10m' : '-10m' })),
    async inject(world, { owner }) {
      await agentOf(world, owner).end('SIGKILL')
    },
    verify: (world) => restartAgents(world, () => ({})),
  },
  {
    victim: 'NOTIFY, lost, and an agent',
    async inject(world, { owner }) {
      for (const { database } of world.proxies) database.withoutNotifications()
      await agentOf(world, owner).end('SIGKILL')
    },
  },
]

export interface Case {
  name: string
  row: Row
  moment: Moment
}

export const casesOf = (rows: readonly Row[]): Case[] =>
  rows.flatMap((row) => MOMENTS.map((moment) => ({ name: `${row.victim}, while ${moment}`, row, moment })))

/** Runs a case. Returns a line for the report. */
export async function runCase(world: World, { row, moment, name }: Case): Promise<string> {
  const { sandlot, proxies } = world
  const several = sandlot.agents.length > 1
  await row.prepare?.(world)
  const person = await world.join()
  const token = randomText(12)
  // Its sandbox is there, and somebody owns them.
  await person.say('run true').done
  const neighbour = new Neighbour(await neighbourOf(world, person.id))
  const waiting = await Promise.all(
    sandlot.services.map(async (_, number) => {
      const said = person.say(`run echo allowed-${number}-${token} >> allowed.txt`, { mode: 'manual' })
      await said.saw('approval_asked')
      return said
    }),
  )
  await neighbour.watch(3_000)

  const owner = await eventually('an owner', () => world.ownerOf(person.id))
  const prints = moment === 'a command prints'
  const reached = prints ? [] : proxies.map(({ engine }) => engine.holdAnswerTo(token))
  const command = [
    `echo begun-${token} >> begun.txt`,
    `n=0; while [ $n -lt 20 ]; do n=$((n+1)); echo "line $n"; sleep 0.2; done`,
    `echo ended-${token} >> ended.txt`,
  ].join('; ')
  const said = person.say(`run ${command}`)
  if (prints) await said.saw('line 2')
  else await Promise.race(reached)

  neighbour.startsToSuffer()
  const began = performance.now()
  const running = { person: person.id, client: person, owner }
  await row.inject(world, running)
  const injected = performance.now() - began
  // Held traffic belongs to killed processes, or continues now.
  for (const { engine } of proxies) engine.restore()
  if (!several) await sandlot.agents[0]?.start()
  const taken = await eventually('an owner that lives', () => world.ownerOf(person.id), 60_000)
  const takeover = performance.now() - began
  await said.done
  const ended = performance.now() - began
  await world.mend()
  await neighbour.stop()

  const reason = await checkLog(world, said, row)
  expect(await linesOf(person, 'begun.txt')).toEqual([`begun-${token}`])
  if (reason === 'completed') expect(await linesOf(person, 'ended.txt')).toEqual([`ended-${token}`])
  for (const [service, one] of waiting.entries()) await answer(person, service, one)
  expect((await linesOf(person, 'allowed.txt')).toSorted()).toEqual(
    sandlot.services.map((_, number) => `allowed-${number}-${token}`),
  )
  for (const one of waiting) await checkLog(world, one, { loses: row.loses })
  await row.verify?.(world, running)
  const who = taken === owner ? 'the same agent' : 'the other agent'
  return [
    `${name}: ${who} had the person after ${seconds(takeover)} (the failure took ${seconds(injected)}), the prompt ended after ${seconds(ended)}: ${reason};`,
    `  its reader saw ${said.interruptions.length} breaks; ${neighbour.report()}`,
  ].join('\n')
}

const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`

/** Every service shows the question, and this one takes the answer. */
export async function answer(person: Client, service: number, said: Said): Promise<void> {
  const path = `/api/sessions/${said.sessionId}/approvals`
  const callId = await eventually('the approval', async () => {
    const found = await person.fetch(service, path)
    const { approvals } = (await found.json()) as { approvals?: { callId: string }[] }
    return approvals?.[0]?.callId
  })
  const answered = await person.fetch(service, `${path}/${callId}`, {
    method: 'POST',
    body: JSON.stringify({ optionId: 'allow_once' }),
  })
  expect(answered.status).toBe(204)
  await said.done
}

async function hasEnded(database: string, sessionId: string): Promise<true | undefined> {
  const reader = await openSessionReader(database)
  try {
    const types = (await reader.log.read(sessionId)).map((event) => sandlotEventOf(event)?.type)
    return types.includes('prompt_ended') || undefined
  } finally {
    await reader.close()
  }
}

/** No event is lost, none is twice, and the prompt has a reason, which is returned. */
export async function checkLog(
  { database }: World,
  said: Said,
  { loses, mayEnd }: Pick<Row, 'loses' | 'mayEnd'>,
): Promise<string | undefined> {
  const reader = await openSessionReader(database)
  try {
    const log = await reader.log.read(said.sessionId)
    expect(log.map(seqOf)).toEqual(log.map((_, place) => place + 1))
    if (loses !== true) for (const [seq, event] of said.events) expect(log[seq - 1]).toEqual(event)
    const of = (type: string): SessionEvent[] => log.filter((event) => sandlotEventOf(event)?.type === type)
    expect(of('prompt_ended')).toHaveLength(of('prompt_started').length)
    const [last] = of('prompt_ended').slice(-1).map(sandlotEventOf)
    const reason = last?.type === 'prompt_ended' ? last.reason : undefined
    expect(mayEnd === true ? ['completed', 'error'] : ['completed']).toContain(reason)
    return reason
  } finally {
    await reader.close()
  }
}

export async function linesOf(person: Client, file: string): Promise<string[]> {
  const text = await eventually(file, async () => {
    const found = await person.fetch(0, `/api/files/content?path=${file}`)
    return found.ok ? found.text() : undefined
  })
  return text.trim().split('\n')
}

/** Another person, whom another agent has where there are several. */
export async function neighbourOf(world: World, personId: string): Promise<Client & { id: string }> {
  const owner = await world.ownerOf(personId)
  for (let tries = 1; ; tries++) {
    const other = await world.join()
    await other.say('hello').done
    if (tries === MOST_NEIGHBOURS || (await world.ownerOf(other.id)) !== owner) return other
    // The services learn of an agent that has just been started within a second.
    await sleep(300 * tries)
  }
}

const MOST_NEIGHBOURS = 6

/** Another person, who asks for something short again and again. */
export class Neighbour {
  readonly #client: Client
  /** Why prompts of theirs did not come to their end. */
  readonly problems: string[] = []
  readonly #before: number[] = []
  readonly #after: number[] = []
  #suffers = false
  #stopped = false
  #ended: Promise<void> | undefined

  constructor(client: Client) {
    this.#client = client
  }

  /** Measures until `stop`; resolves with the first value to compare with. */
  async watch(ms: number): Promise<void> {
    const goOn = async (): Promise<void> => {
      while (!this.#stopped) {
        const began = performance.now()
        const suffered = this.#suffers
        await this.#client.say('hello', { first: 1 }).done.catch((error: unknown) => {
          this.problems.push(messageOf(error))
        })
        const times = suffered || this.#suffers ? this.#after : this.#before
        times.push(performance.now() - began)
        await sleep(NEIGHBOUR_PAUSE_MS)
      }
    }
    this.#ended = goOn()
    await sleep(ms)
  }

  startsToSuffer(): void {
    this.#suffers = true
  }

  /** Resolves when the last one has ended. */
  async stop(): Promise<void> {
    this.#stopped = true
    await this.#ended
  }

  report(): string {
    if (this.#after.length === 0) return 'another person asked for nothing meanwhile'
    const [before, after] = [p95(this.#before), p95(this.#after)]
    return `another person's p95 ${before.toFixed(0)} ms before, ${after.toFixed(0)} ms then (${(after / before).toFixed(1)}×)`
  }
}

const NEIGHBOUR_PAUSE_MS = 300

function p95(times: readonly number[]): number {
  return times.toSorted((a, b) => a - b)[Math.floor((times.length - 1) * 0.95)] ?? Number.NaN
}
