/** V9: what another member waits for while one member, or a stranger, asks for as much as they can. */
import { p50, quantile, seriesOf } from '../../../../test/bench/measure.ts'
import { type Result, below } from '../../../../test/bench/report.ts'
import type { BenchContext } from '../context.ts'
import type { Person } from '../deployment.ts'
import { startProgram } from '../../../../test/bench/program.ts'

const LOAD = new URL('../load.ts', import.meta.url)
const ROUNDS = 5
const ALONE = 'alone'
const LOADS = ['uploads', 'terminals', 'reads', 'searches', 'file search', 'sign-ins of a stranger']

interface Asked {
  what: string
  samples: number
  /** Twice the time alone may be this little. */
  leastMs: number
  once: (by: Person) => Promise<Response>
}

export async function neighbours({ deployment, samples, many }: BenchContext): Promise<Result[]> {
  const [one, other] = [deployment.personOf(0), deployment.personOf(many - 1)]
  const asks: Asked[] = [
    {
      what: 'the list of chats',
      samples: Math.ceil(samples / 2),
      leastMs: 40,
      once: (by) => deployment.get('/api/sessions', by),
    },
    {
      what: 'a command by POST /api/exec',
      samples: Math.ceil(samples * 0.4),
      leastMs: 120,
      once: (by) => deployment.post('/api/exec', { command: 'true', mode: 'yolo' }, by),
    },
  ]
  const ways = [ALONE, ...LOADS]
  /** The 95th percentile of each round. */
  const found = new Map(asks.map((ask) => [ask, new Map(ways.map((load) => [load, seriesOf(load)]))]))
  for (let round = 0; round < ROUNDS; round++)
    for (const load of ways) {
      await using _ =
        load === ALONE ? undefined : await startProgram(LOAD, load, deployment.origin, one.headers.cookie)
      for (const [ask, series] of found) await measure(ask, other, series.get(load))
    }
  return [...found].map(([{ what, leastMs }, series]) => {
    const median = (name: string): number => p50(series.get(name) ?? seriesOf(name))
    const most = Math.max(2 * median(ALONE), leastMs)
    return {
      goal: 'V9',
      title: `another member’s 95th percentile of ${what}, in each of ${ROUNDS} rounds, under one member’s load`,
      series: [...series.values()],
      verdicts: LOADS.map((load) =>
        below(`${load}: median ≤ max(2 × alone, ${leastMs} ms)`, median(load), most, 'ms'),
      ),
    }
  })
}

async function measure({ once, samples }: Asked, by: Person, rounds = seriesOf('')): Promise<void> {
  const series = seriesOf('')
  for (let sample = 0; sample < samples; sample++) {
    const began = performance.now()
    const answer = await once(by)
    await answer.text()
    if (answer.ok) series.values.push(performance.now() - began)
    else rounds.failures++
  }
  rounds.values.push(quantile(series, 0.95))
}
