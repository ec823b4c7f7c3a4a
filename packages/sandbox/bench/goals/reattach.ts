/**
 * G17: the controller of very many sandboxes is killed; another one takes them up again, every byte
 * there.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

import type { BenchContext } from '../context.ts'
import { seriesOf } from '../../../../test/bench/measure.ts'
import { below, type Result } from '../../../../test/bench/report.ts'
import { commandOf, userOf } from '../holder.ts'

const HOLDER = fileURLToPath(new URL('../holder.ts', import.meta.url))

export async function reattach({ deployment, many }: BenchContext): Promise<Result[]> {
  const fixture = await deployment()
  const holder = spawn(
    process.execPath,
    [
      ...process.execArgv,
      HOLDER,
      fixture.deployment,
      Buffer.from(fixture.deploymentKey).toString('hex'),
      fixture.folder,
      String(many),
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  )
  await once(holder.stdout, 'data')
  holder.kill('SIGKILL')
  await once(holder, 'close')

  const sandboxes = fixture.controller()
  const from = performance.now()
  await sandboxes.maintain()
  const took = performance.now() - from
  const users = Array.from({ length: many }, (_, user) => user)
  const opened = await Promise.all(users.map((user) => sandboxes.acquire(userOf(user))))
  let lost = 0
  await Promise.all(
    opened.map(async (sandbox, user) => {
      const command = await sandbox.attach(commandOf(user), {}, { autoAcknowledge: true })
      const expected = Buffer.from(`${Array.from({ length: 2_000 }, (_, line) => line + 1).join('\n')}\n`)
      const pieces: Uint8Array[] = []
      for await (const chunk of command?.output ?? []) pieces.push(chunk.data)
      if (!Buffer.concat(pieces).equals(expected)) lost++
    }),
  )
  return [
    {
      goal: 'G17',
      title: `${many} sandboxes reattached after their controller was killed`,
      series: [seriesOf('Sandlot: all streams open', took)],
      verdicts: [
        below('≤ 2,000 ms', took, 2_000, 'ms'),
        { text: 'sandboxes with a byte lost: none', figure: String(lost), reached: lost === 0 },
      ],
    },
  ]
}
