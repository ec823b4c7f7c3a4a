/** Failures between agents and the API server of a cluster, on which their sandboxes are. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import type { ApiProxy, Reply } from '../../packages/sandbox/test/support/api-proxy.ts'
import type { OwnCluster } from '../cluster/cluster.ts'
import { eventually } from '../e2e/processes.ts'
import { agentOf, linesOf, restartAgents, ROWS, type Row, type Running, SILENCE_MS } from './matrix.ts'

/** Rows of `matrix.ts` that run on a cluster too. */
const ON_EVERY_ENGINE = new Set([
  'an agent in a turn',
  'an agent in a claim',
  'an agent in a handover',
  'an agent that drains',
  'an agent that freezes, then resumes as owner',
])
const REFUSES_MS = 8_000
const LAG_MS = 60_000

/** Parts of the test's cluster; usable when a row runs. */
export interface Given {
  cluster: () => OwnCluster
  /** Proxies, by the number of the agent. */
  apis: readonly ApiProxy[]
  /** Another image of sandboxes. */
  nextImage: string
  /** Images of this person's Pods. */
  imagesOf(person: string): Promise<string[]>
  /** Stops every sandbox. */
  stopAll(): Promise<void>
}

export function clusterRows(given: Given): Row[] {
  const rows = [
    ...ROWS.filter(({ victim }) => ON_EVERY_ENGINE.has(victim)),
    inStart,
    ...[429, 410, 500, 403].map((status) => answering(given, status)),
    silent(given),
    ...cuts(given),
    lagging(given),
    upgrade(given),
  ]
  return rows.map((row) => ({
    ...row,
    async verify(world, running) {
      await row.verify?.(world, running)
      await oneRelay(running)
    },
  }))
}

/** Waits until the sandbox has one relay, the owner's. */
async function oneRelay({ client }: Running): Promise<void> {
  const count = String.raw`cat /proc/[0-9]*/cmdline | tr '\0' '\n' | grep -cx 'rela[y]' > relays.txt`
  await eventually('the end of other relays', async () => {
    await client.say(`run ${count}`).done
    return (await linesOf(client, 'relays.txt'))[0] === '1' || undefined
  })
}

const apiOf = ({ apis }: Given, number: number): ApiProxy => {
  const api = apis[number]
  if (api === undefined) throw new Error(`there is no agent ${number}`)
  return api
}

/** Killed when it lets the Pod of a new person start. */
const inStart: Row = {
  victim: 'an agent in the start of a sandbox',
  async inject(world) {
    const late = await world.join()
    const starts = world.proxies.map(async ({ engine }, number) => {
      await engine.holdAnswerTo('"/spec/schedulingGates"')
      return number
    })
    const said = late.say('run echo once >> started.txt')
    const agent = agentOf(world, await Promise.race(starts))
    await agent.end('SIGKILL')
    for (const { engine } of world.proxies) engine.restore()
    await said.done
    expect(await linesOf(late, 'started.txt')).toEqual(['once'])
  },
}

const REASONS: Record<number, Partial<Reply> & { reason: string }> = {
  429: { reason: 'TooManyRequests', headers: { 'retry-after': '1' } },
  410: { reason: 'Expired' },
  500: { reason: 'InternalError' },
  403: { reason: 'Forbidden' },
}

/** Only watches receive 410: other requests name no state. */
function answering(given: Given, status: number): Row {
  const { reason, headers } = REASONS[status] ?? { reason: '' }
  const body = { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason, code: status, message: 'test' }
  return {
    victim: `an agent whose API server answers ${status}`,
    mayEnd: status === 403 ? true : undefined,
    async inject(_world, { owner }) {
      const api = apiOf(given, owner)
      api.answer(({ url }) =>
        status === 410 && !url?.includes('watch=true') ? undefined : { status, headers, body },
      )
      api.endStreams()
      await sleep(REFUSES_MS)
      api.restore()
    },
  }
}

const silent = (given: Given): Row => ({
  victim: 'the API server, silent for all agents',
  async inject() {
    for (const api of given.apis) api.hold()
    await sleep(SILENCE_MS)
    for (const api of given.apis) api.restore()
  },
})

const cuts = ({ cluster }: Given): Row[] =>
  [false, true].map((both) => ({
    victim: both
      ? 'an agent that is cut off from the API server and from the database, then resumes as owner'
      : 'an agent that is cut off from the API server for longer than its lease',
    mayEnd: both ? true : undefined,
    async inject(world, { owner }) {
      const number = owner === 0 ? 1 : 2
      if (both) agentOf(world, owner).database.hold()
      await cluster().cutAgent(number, true)
      try {
        await sleep(SILENCE_MS)
      } finally {
        await cluster().cutAgent(number, false)
        agentOf(world, owner).database.restore()
      }
    },
  }))

/** The other agent takes over people whose sandboxes its watch has not shown yet. */
const lagging = (given: Given): Row => ({
  victim: 'an agent, while the watches of the other lag a minute',
  prepare: async () => {
    for (const api of given.apis) api.delayWatches(LAG_MS)
  },
  async inject(world, { owner }) {
    await agentOf(world, owner).end('SIGKILL')
  },
  verify: async () => {
    for (const api of given.apis) api.delayWatches(0)
  },
})

const upgrade = (given: Given): Row => ({
  victim: 'agents, replaced by ones of another sandbox image',
  async inject(world, { owner }) {
    for (const number of [owner, 1 - owner]) {
      const agent = agentOf(world, number)
      await agent.end('SIGTERM')
      await agent.start({ SANDLOT_SANDBOX_IMAGE: given.nextImage })
    }
  },
  async verify(world, running) {
    expect(await given.imagesOf(running.person)).toEqual([given.cluster().image])
    await given.stopAll()
    await running.client.say('run true').done
    expect(await given.imagesOf(running.person)).toEqual([given.nextImage])
    await restartAgents(world, () => ({}))
  },
})
