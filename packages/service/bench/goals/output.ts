/** V5: a command’s output, from its first byte to all of it stored. */
import { type Way, inTurns, p50 } from '../../../../test/bench/measure.ts'
import { type Result, atLeast } from '../../../../test/bench/report.ts'
import { type BenchContext, promptIn } from '../context.ts'

const MEGABYTES = 200
const SAMPLES = 5

export async function output(context: BenchContext): Promise<Result[]> {
  const way: Way = {
    name: 'Sandlot',
    once: async () => MEGABYTES / ((await printed(context, MEGABYTES)) / 1_000),
  }
  const [mine] = await inTurns([way], SAMPLES, 1)
  return [
    {
      goal: 'V5',
      title: `a command that prints ${MEGABYTES} MB, stored`,
      unit: 'MB/s',
      series: [mine],
      verdicts: [atLeast('p50 ≥ 60 MB/s', p50(mine), 60, 1)],
    },
  ]
}

/** Milliseconds of the call. */
async function printed({ deployment }: BenchContext, megabytes: number): Promise<number> {
  let took = Number.NaN
  await promptIn(deployment, deployment.personOf(0), `print ${megabytes}`, (event) => {
    if (event.sessionUpdate !== 'tool_call_update' || event.status !== 'completed') return
    took = event._meta.sandlot.timing?.runMs ?? Number.NaN
    if (event._meta.sandlot.outputInfo?.bytes !== megabytes * 1_000_000)
      throw new Error('not everything was stored')
  })
  return took
}
