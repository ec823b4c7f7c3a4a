/** G14, G15: what an idle sandbox costs, and its part that is inside the container. */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'

import type { BenchContext } from '../context.ts'
import { HARDENED } from '../docker-run.ts'
import { p50, seriesOf } from '../../../../test/bench/measure.ts'
import { atMost, below, type Result } from '../../../../test/bench/report.ts'
import { testConfig } from '../../test/support/config.ts'

const run = promisify(execFile)
const MiB = 1024 * 1024
/** Containers that the command line makes at the same time. */
const AT_ONCE = 8

function availableMiB(): number {
  return Number(/MemAvailable:\s+(\d+)/.exec(readFileSync('/proc/meminfo', 'utf8'))?.[1]) / 1024
}

/**
 * Memory free when nothing more is given back: engine and kernel go on with that for a while after
 * a removal.
 */
async function settled(): Promise<number> {
  globalThis.gc?.()
  let last = availableMiB()
  for (let still = 0, readings = 0; still < 3 && readings < 40; readings++) {
    await sleep(2_000)
    const now = availableMiB()
    still = Math.abs(now - last) < 2 ? still + 1 : 0
    last = now
  }
  return last
}

/** Proportional set size of a process, in MiB: shared pages counted in parts. */
export function pssMiB(pid: number): number {
  return Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1]) / 1024
}

async function pidOf(container: string): Promise<number> {
  return Number((await run('docker', ['inspect', '-f', '{{.State.Pid}}', container])).stdout)
}

export async function idleMemory({ deployment, many }: BenchContext): Promise<Result[]> {
  // The engine keeps the heap growth of its first container: no candidate is charged for it.
  await inContainers(many, 'sleep', 'infinity')
  const fixture = await deployment()
  const sandboxes = fixture.controller()
  const before = await settled()
  const users = Array.from({ length: many }, (_, user) => `idle-${user}`)
  await Promise.all(users.map((user) => sandboxes.acquire(user)))
  const perSandbox = (before - (await settled())) / many
  const inside = seriesOf('sbxd, proportional set size')
  for (const id of (await fixture.containers()).slice(0, 50)) inside.values.push(pssMiB(await pidOf(id)))
  await sandboxes.close()
  await run('docker', ['rm', '-f', ...(await fixture.containers())], { maxBuffer: MiB })
  const agent = await inContainers(many, 'node', '-e', 'process.stdin.resume()')
  const empty = await inContainers(many, 'sleep', 'infinity')
  return [
    {
      goal: 'G14',
      title: `memory of one idle sandbox of ${many}: engine, shim and controller included`,
      unit: 'MiB',
      series: [
        seriesOf('Sandlot', perSandbox),
        seriesOf('an idle node process as the agent', agent),
        seriesOf('sleep: what the engine, its shim and the kernel take', empty),
      ],
      verdicts: [
        below('≤ 12 MiB', perSandbox, 12, 'MiB'),
        {
          ...atMost('≤ 1/3 of a node agent', perSandbox, agent, 1 / 3),
          obstacle:
            'Most of it is the engine’s shim and the kernel, as the container that only sleeps shows.',
        },
      ],
    },
    {
      goal: 'G15',
      title: 'the part of it inside the container',
      unit: 'MiB',
      series: [inside],
      verdicts: [below('≤ 1 MiB', p50(inside), 1, 'MiB')],
    },
  ]
}

/** MiB of one of so many of the same containers with this resident program in it. */
async function inContainers(many: number, program: string, ...args: string[]): Promise<number> {
  const before = await settled()
  const ids: string[] = []
  const start = async (): Promise<void> => {
    const { stdout } = await run('docker', [
      'run',
      '-d',
      '-i',
      ...HARDENED,
      `--entrypoint=${program}`,
      testConfig.image,
      ...args,
    ])
    ids.push(stdout.trim())
  }
  try {
    for (let made = 0; made < many; made += AT_ONCE)
      await Promise.all(Array.from({ length: Math.min(AT_ONCE, many - made) }, start))
    return (before - (await settled())) / many
  } finally {
    await run('docker', ['rm', '-f', '-v', ...ids], { maxBuffer: MiB })
  }
}
