/** G14, G15: what an idle sandbox costs, and its part that is inside the container. */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'

import type { BenchContext } from '../context.ts'
import { HARDENED } from '../docker-run.ts'
import { p50, type Series, single } from '../measure.ts'
import { atMost, below, loadNow, type Result } from '../report.ts'
import { testConfig } from '../../test/config.ts'

const run = promisify(execFile)
const MiB = 1024 * 1024
const AGENTS = 20

function availableMiB(): number {
  return Number(/MemAvailable:\s+(\d+)/.exec(readFileSync('/proc/meminfo', 'utf8'))?.[1]) / 1024
}

/** Until what was just done has settled: engine and kernel give pages back a little later. */
async function settled(): Promise<number> {
  globalThis.gc?.()
  await sleep(5_000)
  return availableMiB()
}

/** Proportional set size of a process, in MiB: shared pages counted in parts. */
function pssMiB(pid: number): number {
  return Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1]) / 1024
}

async function pidOf(container: string): Promise<number> {
  return Number((await run('docker', ['inspect', '-f', '{{.State.Pid}}', container])).stdout)
}

export async function idleMemory({ deployment, many }: BenchContext): Promise<Result[]> {
  const fixture = await deployment()
  const sandboxes = fixture.controller()
  const before = await settled()
  const users = Array.from({ length: many }, (_, user) => `idle-${user}`)
  await Promise.all(users.map((user) => sandboxes.acquire(user)))
  const perSandbox = (before - (await settled())) / many
  const inside: Series = { name: 'sbxd, proportional set size', values: [], failures: 0 }
  for (const id of (await fixture.containers()).slice(0, 50)) inside.values.push(pssMiB(await pidOf(id)))
  inside.values.sort((one, other) => one - other)
  await sandboxes.close()
  await run('docker', ['rm', '-f', ...(await fixture.containers())], { maxBuffer: MiB })
  const agent = await inContainers('node', '-e', 'process.stdin.resume()')
  const empty = await inContainers('sleep', 'infinity')
  return [
    {
      goal: 'G14',
      title: `memory of one idle sandbox of ${many}: engine, shim and controller included`,
      unit: 'MiB',
      series: [
        single('Sandlot', perSandbox),
        single(`an idle node process as the agent, of ${AGENTS}`, agent),
        single(`sleep, of ${AGENTS}: what the engine, its shim and the kernel take`, empty),
      ],
      verdicts: [
        below('≤ 12 MiB', perSandbox, 12, 'MiB'),
        atMost('≤ 1/3 of a node agent', perSandbox, agent, 1 / 3),
      ],
      load: loadNow(),
    },
    {
      goal: 'G15',
      title: 'the part of it inside the container',
      unit: 'MiB',
      series: [inside],
      verdicts: [below('≤ 1 MiB', p50(inside), 1, 'MiB')],
      load: loadNow(),
    },
  ]
}

/** MiB of one of the same containers with this resident program in it. */
async function inContainers(program: string, ...args: string[]): Promise<number> {
  const before = await settled()
  const ids: string[] = []
  try {
    for (let each = 0; each < AGENTS; each++) {
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
    return (before - (await settled())) / AGENTS
  } finally {
    await run('docker', ['rm', '-f', '-v', ...ids])
  }
}
