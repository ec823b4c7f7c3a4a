/**
 * G13: a tree of a hundred processes, with sessions and double forks of their own, is cancelled
 * until none is left.
 */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'

import { treeOf } from '../../test/support/process-tree.ts'
import type { BenchContext } from '../context.ts'
import { newId } from '../context.ts'
import { p50, single, type Series } from '../measure.ts'
import { openPeers } from '../peers.ts'
import { below, loadNow, type Result } from '../report.ts'

const run = promisify(execFile)
const PROCESSES = 100
const ROUNDS = 20
const MARK = '98765'
const TREE = treeOf(MARK)

async function survivors(container: string): Promise<number> {
  const { stdout } = await run('docker', ['top', container, '-eo', 'pid,args'])
  return stdout.split('\n').filter((line) => line.includes(`sleep ${MARK}`)).length
}

export async function cancelTree(context: BenchContext): Promise<Result[]> {
  const sandbox = await context.sandboxes.acquire('bench')
  const ours: Series = { name: 'Sandlot: cancel until the end is known', values: [], failures: 0 }
  let left = 0
  for (let round = 0; round < ROUNDS; round++) {
    const command = await sandbox.run({ id: newId(), command: TREE, autoAcknowledge: true })
    const output = command.output[Symbol.asyncIterator]()
    await output.next()
    await untilThere(sandbox.id)
    const from = performance.now()
    await command.cancel(0)
    await command.exit
    ours.values.push(performance.now() - from)
    left += await survivors(sandbox.id)
  }
  ours.values.sort((one, other) => one - other)

  await using peers = await openPeers(context)
  // Both in the library's own container: in ours, sbxd would end what they leave behind.
  const { id } = peers.mastra.container
  const cli = spawn('docker', ['exec', id, 'bash', '-c', TREE], { stdio: ['ignore', 'pipe', 'ignore'] })
  await once(cli.stdout, 'data')
  await untilThere(id)
  cli.kill('SIGKILL')
  await once(cli, 'close')
  await sleep(1_000)
  const afterCli = await survivors(id)
  // It may wait for the processes that its own time-out leaves behind.
  const timedOut = peers.mastra.executeCommand(TREE, [], { timeout: 2_000 }).catch(() => undefined)
  await Promise.race([timedOut, sleep(5_000)])
  await sleep(1_000)
  const afterMastra = (await survivors(id)) - afterCli
  return [
    {
      goal: 'G13',
      title: `cancel of ${PROCESSES} and more processes with setsid and double forks`,
      unit: 'ms',
      series: [ours],
      verdicts: [
        below('p50 ≤ 50 ms', p50(ours), 50, 'ms'),
        { text: `survivors of ${ROUNDS} cancels: none`, figure: String(left), reached: left === 0 },
      ],
      load: loadNow(),
    },
    {
      goal: 'G13',
      title: 'processes that live a second after the peers’ own cancel',
      unit: 'processes',
      series: [
        single('Sandlot', left),
        single('docker exec, the command killed', afterCli),
        single('@mastra/docker, timed out', afterMastra),
      ],
      verdicts: [],
      load: loadNow(),
    },
  ]
}

async function untilThere(container: string): Promise<void> {
  while ((await survivors(container)) < PROCESSES) await sleep(20)
}
