/** G18: a file of 4 KiB written and read back. */
import { createHash, randomBytes } from 'node:crypto'

import type { BenchContext } from '../context.ts'
import { inTurns, p50 } from '../../../../test/bench/measure.ts'
import { atMost, type Result } from '../../../../test/bench/report.ts'
import { dockerodeExec } from './calls.ts'

const BYTES = 4096

export async function fileRoundTrip({ sandboxes, docker, samples }: BenchContext): Promise<Result[]> {
  const sandbox = await sandboxes.acquire('bench')
  const container = docker.getContainer(sandbox.id)
  const data = randomBytes(BYTES)
  const digest = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')
  const series = await inTurns(
    [
      {
        name: 'Sandlot: files.write, files.read',
        async once() {
          await sandbox.files.write('bench.bin', data)
          if (digest(await sandbox.files.read('bench.bin')) !== digest(data)) throw new Error('other bytes')
        },
      },
      {
        name: 'exec base64 -d, then exec cat',
        async once() {
          const text = data.toString('base64')
          await dockerodeExec(container, ['sh', '-c', `echo ${text} | base64 -d >bench.bin`])
          await dockerodeExec(container, ['cat', 'bench.bin'])
        },
      },
    ],
    samples,
    5,
  )
  const [ours, theirs] = series
  return [
    {
      goal: 'G18',
      title: 'a file of 4 KiB written and read back',
      series,
      verdicts: [atMost('≤ 1/20 of two execs', p50(ours), p50(theirs), 1 / 20)],
    },
  ]
}
