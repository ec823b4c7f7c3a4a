/** V9: what another member waits for while one member, or a stranger, asks for as much as they can. */
import { quantile, type Series } from '../../../sandbox/bench/measure.ts'
import { type Result, below, loadNow } from '../../../sandbox/bench/report.ts'
import type { BenchContext } from '../context.ts'
import type { Person } from '../deployment.ts'
import { startProgram } from '../program.ts'

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
  /** By what is asked and under which load, of each round its 95th percentile. */
  const found = new Map(asks.map(({ what }) => [what, new Map<string, number[]>()]))
  const failures = new Map<string, number>()
  for (let round = 0; round < ROUNDS; round++)
    for (const load of [ALONE, ...LOADS]) {
      await using _ =
        load === ALONE
          ? undefined
          : await startProgram('load.ts', [load, deployment.origin, one.headers.cookie])
      for (const ask of asks) {
        const { p95, failed } = await measure(ask, other)
        const rounds = found.get(ask.what)
        rounds?.set(load, [...(rounds.get(load) ?? []), p95])
        failures.set(`${ask.what} ${load}`, (failures.get(`${ask.what} ${load}`) ?? 0) + failed)
      }
    }
  return asks.map(({ what, leastMs }) => {
    const series = [ALONE, ...LOADS].map((name): Series => ({
      name,
      values: (found.get(what)?.get(name) ?? []).toSorted((a, b) => a - b),
      failures: failures.get(`${what} ${name}`) ?? 0,
    }))
    const median = (name: string): number =>
      quantile(series.find((each) => each.name === name) ?? { name, values: [], failures: 0 }, 0.5)
    const most = Math.max(2 * median(ALONE), leastMs)
    return {
      goal: 'V9',
      title: `another member’s 95th percentile of ${what}, in each of ${ROUNDS} rounds, under one member’s load`,
      unit: 'ms' as const,
      series,
      verdicts: LOADS.map((load) =>
        below(`${load}: median ≤ max(2 × alone, ${leastMs} ms)`, median(load), most, 'ms'),
      ),
      load: loadNow(),
    }
  })
}

async function measure({ once, samples }: Asked, by: Person): Promise<{ p95: number; failed: number }> {
  const series: Series = { name: '', values: [], failures: 0 }
  for (let sample = 0; sample < samples; sample++) {
    const began = performance.now()
    const answer = await once(by)
    await answer.text()
    if (answer.ok) series.values.push(performance.now() - began)
    else series.failures++
  }
  series.values.sort((a, b) => a - b)
  return { p95: quantile(series, 0.95), failed: series.failures }
}
