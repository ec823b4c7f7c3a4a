/**
 * G13: a tree of a hundred processes, with sessions and double forks of their own, is cancelled
 * until none is left.
 */
import { execFile } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'

import { treeOf } from '../../test/support/process-tree.ts'
import { type BenchContext, newId } from '../context.ts'
import { p50, seriesOf } from '../../../../test/bench/measure.ts'
import { below, type Result } from '../../../../test/bench/report.ts'

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
  const ours = seriesOf('Sandlot: cancel until the end is known')
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
  return [
    {
      goal: 'G13',
      title: `cancel of ${PROCESSES} and more processes with setsid and double forks`,
      series: [ours],
      verdicts: [
        below('p50 ≤ 50 ms', p50(ours), 50, 'ms'),
        { text: `survivors of ${ROUNDS} cancels: none`, figure: String(left), reached: left === 0 },
      ],
    },
  ]
}

async function untilThere(container: string): Promise<void> {
  while ((await survivors(container)) < PROCESSES) await sleep(20)
}
