/** P5 to P8: two agents and two services beside one of each: what they bring through, and how people change hands. */
import { setTimeout as sleep } from 'node:timers/promises'
import { openSessionReader } from '@sandlot/storage/store/open'
import { inTurns, p50, quantile, seriesOf } from '../../../../test/bench/measure.ts'
import { type Result, atLeast, below } from '../../../../test/bench/report.ts'
import { promptIn } from '../context.ts'
import { limitCpu, quotaProblem } from '../cpu-quota.ts'
import { type Deployment, openDeployment } from '../deployment.ts'
import type { PostgresContext } from '../postgres.ts'
import { startProgram } from '../../../../test/bench/program.ts'

/** One person for each stream, spread over the services, with streams at full speed. */
const STREAMS = 40
const TOKENS = 2_000
const ROUNDS = 3
const QUARTER = 0.25
const TAKEOVERS = 2
/** A stream that is cut: it lasts longer than any of this takes. */
const LONG = 'stream 1200 50'
const POLL_MS = 20

/** So many agents and services on a database of their own. */
async function deploymentOf(
  replicas: number,
  name: string,
  { database }: PostgresContext,
  stack: AsyncDisposableStack,
): Promise<Deployment & { database: string }> {
  const player = stack.use(await startProgram(new URL('../player.ts', import.meta.url)))
  const address = await database(name)
  const options = { sockets: STREAMS, database: address, replicas }
  const deployment = await openDeployment(`${player.origin}/v1`, options, stack)
  await deployment.start()
  return Object.assign(deployment, { database: address })
}

async function throughput(context: PostgresContext, share: number | undefined): Promise<Result[]> {
  await using stack = new AsyncDisposableStack()
  const quotas = stack.use(new DisposableStack())
  const way = async (replicas: number) => {
    const name = `${share === undefined ? 'cores' : 'quarter'}_${replicas}`
    const deployment = await deploymentOf(replicas, name, context, stack)
    if (share !== undefined) for (const { pid } of deployment.processes) limitCpu(pid, share, quotas)
    return {
      name: replicas === 1 ? 'one agent, one service' : `${replicas} agents, ${replicas} services`,
      once: async () => {
        let tokens = 0
        const began = performance.now()
        await Promise.all(
          Array.from({ length: STREAMS }, (_, reader) =>
            promptIn(deployment, deployment.personOf(reader), `stream ${TOKENS} 0`, (event) => {
              if (event.sessionUpdate !== 'agent_message_chunk') return
              if (event._meta.sandlot.seq !== undefined || event.content.type !== 'text') return
              tokens += event.content.text.split(' ').filter((token) => token !== '').length
            }),
          ),
        )
        return (tokens / (performance.now() - began)) * 1_000
      },
    }
  }
  const series = await inTurns([await way(1), await way(2)], ROUNDS, 1)
  const [one, two] = series
  const held = share !== undefined
  return [
    {
      goal: held ? 'P6' : 'P5',
      title: `tokens a second through ${STREAMS} streams, ${held ? 'each process held to a quarter of a core' : 'on the same cores'}`,
      unit: 'tokens/s',
      series,
      verdicts: [
        held
          ? atLeast('two of each pass ≥ 1.6 × those of one', p50(two), p50(one), 1.6)
          : atLeast('two lose nothing against one', p50(two), p50(one), 1),
      ],
    },
  ]
}

export const onSameCores = (context: PostgresContext): Promise<Result[]> => throughput(context, undefined)

export async function onQuarterCores(context: PostgresContext): Promise<Result[]> {
  const problem = quotaProblem()
  if (problem !== undefined) throw new Error(problem)
  return throughput(context, QUARTER)
}

/** P7, P8. */
export async function changeOfHands(context: PostgresContext): Promise<Result[]> {
  const taken = seriesOf('from kill -9 of an agent to the next event of each of its streams')
  const drained = seriesOf('from SIGUSR2 until it has no people')
  for (let round = 0; round < TAKEOVERS; round++) {
    taken.values.push(await changed('SIGKILL', `taken_${round}`, context))
    drained.values.push(await changed('SIGUSR2', `drained_${round}`, context))
  }
  return [
    {
      goal: 'P7',
      title: `an agent of two with its share of ${STREAMS} streams is killed: until the last of them goes on at the other`,
      series: [taken],
      verdicts: [below('≤ 10 s', quantile(taken, 1) / 1_000, 10, 's')],
    },
    {
      goal: 'P8',
      title: `an agent of two with its share of ${STREAMS} streams is drained: until it has no people`,
      series: [drained],
      verdicts: [below('≤ 30 s', quantile(drained, 1) / 1_000, 30, 's')],
    },
  ]
}

/** Milliseconds from this signal to one of two agents, until its people are the other's. */
async function changed(
  signal: 'SIGKILL' | 'SIGUSR2',
  name: string,
  context: PostgresContext,
): Promise<number> {
  await using stack = new AsyncDisposableStack()
  const deployment = await deploymentOf(2, name, context, stack)
  const reader = await openSessionReader(deployment.database)
  stack.defer(() => reader.close())
  const last = new Map<number, number>()
  const ended = Array.from({ length: STREAMS }, (_, number) =>
    promptIn(deployment, deployment.personOf(number), LONG, () => void last.set(number, performance.now())),
  )
  // They end with the deployment, before their time.
  for (const one of ended) one.catch(() => undefined)
  while (last.size < STREAMS) await sleep(POLL_MS)
  const owners = await Promise.all(
    Array.from({ length: STREAMS }, async (_, number) =>
      reader.replicas.ownerOf(deployment.personOf(number).id),
    ),
  )
  const victim = deployment.processes.find(({ replica }) => replica !== undefined && replica === owners[0])
  if (victim?.replica === undefined) throw new Error('the first person has no agent')
  const theirs = [...owners.keys()].filter((number) => owners[number] === victim.replica)
  const began = performance.now()
  process.kill(victim.pid, signal)
  if (signal === 'SIGUSR2') {
    while ((await reader.replicas.peopleOf(victim.replica)).length > 0) await sleep(POLL_MS)
    return performance.now() - began
  }
  // Events under way still arrive.
  await sleep(500)
  const silent = performance.now()
  while (theirs.some((number) => (last.get(number) ?? 0) < silent)) {
    if (performance.now() - began > 60_000) throw new Error('a stream did not go on')
    await sleep(POLL_MS)
  }
  return performance.now() - began
}
