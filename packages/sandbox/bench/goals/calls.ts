/** G1 to G5: what one `true` costs, and how many a second two cores give to fifty sandboxes. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { promisify } from 'node:util'

import type Docker from 'dockerode'

import { type BenchContext, newId, runToEnd } from '../context.ts'
import { inTurns, p50, p99, seriesOf } from '../../../../test/bench/measure.ts'
import { openPeers } from '../peers.ts'
import { atLeast, atMost, below, type Result } from '../../../../test/bench/report.ts'
import { openSentinelShell } from '../sentinel-shell.ts'

const PARALLEL = 50
const PARALLEL_MS = 5_000
/** The same program in every way: a shell costs as much as all the rest of a call. */
export const SH: readonly string[] = ['sh', '-c', 'true']
const BASH: readonly string[] = ['bash', '-c', 'true']

/** create, start, inspect: what a library over the engine's API has to do for one command. */
export async function dockerodeExec(container: Docker.Container, command: readonly string[]): Promise<void> {
  const exec = await container.exec({ Cmd: [...command], AttachStdout: true, AttachStderr: true })
  const stream = await exec.start({})
  stream.resume()
  await once(stream, 'end')
  const { ExitCode } = await exec.inspect()
  if (ExitCode !== 0) throw new Error(`ended with ${ExitCode}`)
}

export async function oneCall({ sandboxes, samples, docker, own }: BenchContext): Promise<Result[]> {
  const { id } = await sandboxes.acquire('bench')
  const container = docker.getContainer(id)
  const execCommand = promisify(execFile)
  await using stack = own(new AsyncDisposableStack())
  const peers = await openPeers(stack)
  using shell = await openSentinelShell(id)
  const ours = async (program: readonly string[]): Promise<void> => {
    const sandbox = await sandboxes.acquire('bench')
    const command = await sandbox.run({ id: newId(), command: program })
    const exit = await command.exit
    if (exit.code !== 0) throw new Error(`ended with ${JSON.stringify(exit)}`)
    command.acknowledge(exit.bytes)
  }
  const series = await inTurns(
    [
      { name: 'Sandlot: acquire, run, exit', once: () => ours(SH) },
      { name: 'dockerode exec', once: () => dockerodeExec(container, SH) },
      { name: 'docker exec', once: async () => void (await execCommand('docker', ['exec', id, ...SH])) },
      { name: 'spawn on the host', once: spawnOnHost },
      { name: 'Sandlot, by bash', once: () => ours(BASH) },
      { name: 'dockerode exec, by bash', once: () => dockerodeExec(container, BASH) },
      { name: 'resident shell with a sentinel', once: () => shell.run('true') },
      ...peers,
    ],
    samples,
    Math.min(20, samples),
  )
  const [mine, dockerode, cli, host, mineByBash, dockerodeByBash] = series
  return [
    {
      goal: 'G1–G4',
      title: 'one `sh -c true`, the stream warm',
      series,
      verdicts: [
        atMost('G1 p50 ≤ 1/30 of dockerode exec', p50(mine), p50(dockerode), 1 / 30),
        {
          ...atMost('G1 by bash, which the shell tool runs', p50(mineByBash), p50(dockerodeByBash), 1 / 30),
          obstacle: 'bash takes equally long to start in both, which is a fifth of ours.',
        },
        atMost('G2 p50 ≤ 1/25 of docker exec', p50(mine), p50(cli), 1 / 25),
        atMost('G3 p50 ≤ 0.8 of a spawn on the host', p50(mine), p50(host), 0.8),
        {
          ...below('G4 p50 ≤ 3 ms', p50(mine), 3, 'ms'),
          obstacle:
            'Milliseconds depend on the machine: “spawn on the host” is the same shell without a sandbox.',
        },
        below('G4 p99 ≤ 10 ms', p99(mine), 10, 'ms'),
      ],
    },
  ]
}

async function spawnOnHost(): Promise<void> {
  const child = spawn('sh', SH.slice(1), { stdio: ['ignore', 'pipe', 'pipe'] })
  const [code] = (await once(child, 'close')) as [number]
  if (code !== 0) throw new Error(`ended with ${code}`)
}

export async function manyCalls({ sandboxes, docker }: BenchContext): Promise<Result[]> {
  const users = Array.from({ length: PARALLEL }, (_, user) => `parallel-${user}`)
  const open = await Promise.all(users.map((user) => sandboxes.acquire(user)))
  const ours = await callsPerSecond(
    open.map((sandbox) => async () => {
      await runToEnd(sandbox, { command: SH })
    }),
  )
  const theirs = await callsPerSecond(
    open.map(
      ({ id }) =>
        async () =>
          dockerodeExec(docker.getContainer(id), SH),
    ),
  )
  await Promise.all(users.map((user) => sandboxes.stop(user)))
  return [
    {
      goal: 'G5',
      title: `calls a second, ${PARALLEL} sandboxes at once`,
      unit: 'calls/s',
      series: [seriesOf('Sandlot', ours), seriesOf('dockerode exec', theirs)],
      verdicts: [atLeast('≥ 15 times dockerode exec', ours, theirs, 15)],
    },
  ]
}

/** Every caller again and again for a fixed time. */
async function callsPerSecond(callers: readonly (() => Promise<void>)[]): Promise<number> {
  const from = performance.now()
  let calls = 0
  await Promise.all(
    callers.map(async (call) => {
      while (performance.now() - from < PARALLEL_MS) {
        await call()
        calls++
      }
    }),
  )
  return calls / ((performance.now() - from) / 1000)
}
