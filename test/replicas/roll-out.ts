/** A version takes another's place, one process after the other, while people work: as docs/postgresql.md says. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { randomText } from '@sandlot/shared/base/ids'
import { expect } from 'vitest'
import { campaign, extent } from '../campaign.ts'
import { nodeEnvironment } from '../config.ts'
import { type Replica, type Version, eventually } from '../e2e/processes.ts'
import type { Client, Said } from './client.ts'
import { Neighbour, answer, checkLog, linesOf, neighbourOf } from './matrix.ts'
import type { World } from './world.ts'

/** Work during the roll-out: a command that ends on demand, and an open approval at every service. */
interface Working {
  person: Client & { id: string }
  token: string
  said: Said
  waiting: Said[]
}

async function beginWork(world: World, person: Client & { id: string }): Promise<Working> {
  const token = randomText(12)
  await person.say('run true').done
  const waiting = await Promise.all(
    world.sandlot.services.map(async (_, number) => {
      const said = person.say(`run echo allowed-${number}-${token} >> allowed.txt`, { mode: 'manual' })
      await said.saw('approval_asked')
      return said
    }),
  )
  const command = [
    `echo begun-${token} >> begun.txt`,
    `n=0; while [ ! -e stop-${token} ]; do n=$((n+1)); echo "line $n"; sleep 0.2; done`,
    `echo ended-${token} >> ended.txt`,
  ].join('; ')
  const said = person.say(`run ${command}`)
  await said.saw('line 2')
  return { person, token, said, waiting }
}

/** It ran once to its end, nothing of it is missing, and what waited can be answered at every service. */
async function endWork(world: World, { person, token, said, waiting }: Working): Promise<void> {
  await person.say(`run touch stop-${token}`).done
  await said.done
  await checkLog(world, said, {})
  expect(await linesOf(person, 'begun.txt')).toEqual([`begun-${token}`])
  expect(await linesOf(person, 'ended.txt')).toEqual([`ended-${token}`])
  for (const [service, one] of waiting.entries()) {
    await answer(person, service, one)
    await checkLog(world, one, {})
  }
  expect((await linesOf(person, 'allowed.txt')).toSorted()).toEqual(
    waiting.map((_, number) => `allowed-${number}-${token}`),
  )
}

/** By the program of that version; `./sandlot drain` and compose run the same. */
async function drain({ database }: World, { root }: Version, { name }: Replica): Promise<void> {
  const program = ['--conditions=sandlot-source', `${root}packages/ai-agent/src/agent/drain.ts`, name]
  const env = { ...nodeEnvironment(), DATABASE_URL: database }
  const { stdout } = await promisify(execFile)(`${root}node_modules/.bin/node`, program, { env })
  expect(JSON.parse(stdout)).toEqual({ drained: [{ id: name, isThere: true, left: [] }], others: 1 })
}

async function replace(replica: Replica, version: Version): Promise<void> {
  await replica.end('SIGTERM')
  replica.version = version
  await replica.start()
}

/** Returns a line for the report. An ordinary run replaces only the first agent and service. */
export async function rollOut(world: World, version: Version): Promise<string> {
  const { agents, services } = world.sandlot
  const [first, second] = agents
  if (first === undefined || second === undefined) throw new Error('there are not two agents')
  const other = await world.join()
  const neighbour = new Neighbour(other)
  await neighbour.watch(1_000)
  const ada = await beginWork(world, await world.join())
  neighbour.startsToSuffer()

  await drain(world, version, first)
  await replace(first, version)
  // The new agent has a user with a sandbox, and crashes: the older one continues with both users.
  const late = await neighbourOf(world, ada.person.id)
  const grace = await beginWork(world, late)
  expect(await eventually('an owner', () => world.ownerOf(late.id))).toBe(0)
  await first.end('SIGKILL')
  await eventually('the older agent as owner', async () =>
    (await world.ownerOf(late.id)) === 1 ? 1 : undefined,
  )
  await late.say('run true').done
  await first.start()

  if (campaign.full) {
    await drain(world, version, second)
    await ada.person.say('run true').done
    await replace(second, version)
  }
  for (const service of extent(services.slice(0, 1), services)) {
    await replace(service, version)
    await ada.person.say('run true').done
  }
  for (const work of [ada, grace]) await endWork(world, work)
  await neighbour.stop()
  expect(neighbour.problems).toEqual([])
  const ends = 'select distinct ended_reason from sessions.sessions where user_id = any($1)'
  const people = [other, ada.person, late].map(({ id }) => id)
  expect(await world.rows(ends, [people])).toEqual([{ ended_reason: 'completed' }])
  const breaks = [ada, grace].map(({ said }) => said.interruptions.length)
  return `readers saw ${breaks.join(' and ')} breaks; ${neighbour.report()}`
}
