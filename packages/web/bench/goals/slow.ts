/** W6: a person's way to the composer on a slow line, with nothing in the cache. */
import { type Series, p50, seriesOf } from '../../../../test/bench/measure.ts'
import { type Result, type Unit, below } from '../../../../test/bench/report.ts'
import { type BenchContext, type Contender, messages } from '../context.ts'

const LINE = { offline: false, latency: 400, downloadThroughput: 50_000, uploadThroughput: 50_000 }
const LINE_TEXT = '50 kB/s and 400 ms'

/** In the page: when its first content was painted, and when the field of its composer. */
const WAIT = `
  window.painted = new Promise((done) => {
    new PerformanceObserver((list) => {
      for (const { startTime } of list.getEntriesByName('first-contentful-paint')) done(startTime)
    }).observe({ type: 'paint', buffered: true })
  })
  window.usable = new Promise((done) => {
    const look = () => document.querySelector('textarea#composer:enabled') === null
      ? requestAnimationFrame(look)
      : requestAnimationFrame(() => setTimeout(() => done(performance.now())))
    look()
  })
`

/** In the page: both times, and the compressed bytes that had come by the second. */
const SEEN = `
  Promise.all([painted, usable]).then(([shell, composer]) => ({
    shell,
    composer,
    bytes: [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]
      .filter(({ name, responseEnd }) => !name.includes('/api/') && responseEnd <= composer)
      .reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0),
  }))
`

interface Seen {
  shell: number
  composer: number
  bytes: number
}

export async function slow({ samples, contenders: [ours] }: BenchContext): Promise<Result[]> {
  const seen: Seen[] = []
  for (let sample = 0; sample < samples; sample++) seen.push(await visit(ours))
  const result = (title: string, unit: Unit, values: number[], goal: string, most: number): Result => {
    const series: Series = seriesOf(ours.name, ...values)
    const verdicts = [below(`p50 ≤ ${goal}`, p50(series), most, unit)]
    return { goal: 'W6', title: `a new chat over ${LINE_TEXT}: ${title}`, unit, series: [series], verdicts }
  }
  return [
    result(
      'the first paint',
      'ms',
      seen.map(({ shell }) => shell),
      '1,500 ms',
      1_500,
    ),
    result(
      'the composer can be used',
      'ms',
      seen.map(({ composer }) => composer),
      '7,000 ms',
      7_000,
    ),
    result(
      'files until then, compressed',
      'KiB',
      seen.map(({ bytes }) => bytes / 1024),
      '195.3 KiB (200 kB)',
      195.3,
    ),
  ]
}

async function visit(contender: Contender): Promise<Seen> {
  await using open = await contender.open('s_20', messages(20), {
    path: '/',
    network: LINE,
    script: WAIT,
  })
  return await open.page.evaluate<Seen>(SEEN)
}
