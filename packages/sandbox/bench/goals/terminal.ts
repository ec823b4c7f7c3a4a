/** G19: a key pressed in a terminal until its echo is back. */
import { once } from 'node:events'

import { type BenchContext, newId } from '../context.ts'
import { inTurns, p99 } from '../../../../test/bench/measure.ts'
import { atMost, type Result } from '../../../../test/bench/report.ts'

export async function keystrokes({ sandboxes, docker, samples }: BenchContext): Promise<Result[]> {
  const sandbox = await sandboxes.acquire('bench')
  const ours = await sandbox.run({
    id: newId(),
    command: ['cat'],
    terminal: { columns: 80, rows: 24 },
    autoAcknowledge: true,
  })
  const output = ours.output[Symbol.asyncIterator]()
  const exec = await docker.getContainer(sandbox.id).exec({
    Cmd: ['cat'],
    Tty: true,
    AttachStdin: true,
    AttachStdout: true,
    AttachStderr: true,
  })
  const theirs = await exec.start({ hijack: true, stdin: true, Tty: true })
  const key = Buffer.from('x')
  const series = await inTurns(
    [
      {
        name: 'Sandlot terminal',
        async once() {
          await ours.writeStdin(key)
          await output.next()
        },
      },
      {
        name: 'docker exec -it stream',
        async once() {
          const echo = once(theirs, 'data')
          theirs.write(key)
          await echo
        },
      },
    ],
    // A hundredth of few keys is one or two of them.
    samples * 3,
    20,
  )
  await ours.cancel(0)
  theirs.destroy()
  const [mine, other] = series
  return [
    {
      goal: 'G19',
      title: 'a key in a terminal until its echo',
      series,
      verdicts: [
        {
          ...atMost('p99 ≤ that of docker exec -it', p99(mine), p99(other), 1),
          obstacle:
            'A key passes one more process, sbxd, in both directions: the p50 shows its cost, the p99 how long it may wait for a processor.',
        },
      ],
    },
  ]
}
