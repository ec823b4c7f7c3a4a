/** W5: what comes over the wire until a person reads their first chat. */
import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { seriesOf } from '../../../../test/bench/measure.ts'
import { type Result, below } from '../../../../test/bench/report.ts'
import { type BenchContext, LAST_WORDS, drawn, messages } from '../context.ts'

const KIB = 1024

export async function size({ dist, contenders: [ours] }: BenchContext): Promise<Result[]> {
  await using open = await ours.open('s_size', messages(20))
  const { page } = open
  const paths = new Set<string>()
  page.on('request', (request) => paths.add(new URL(request.url()).pathname))
  await page.reload()
  await drawn(page, LAST_WORDS)
  await page.evaluate('document.fonts.ready')
  const files = new Set(
    [...paths]
      .filter((path) => !path.startsWith('/api/') && path !== '/ws')
      .map((path) => join(dist, existsSync(join(dist, path)) && path !== '/' ? path : '/index.html')),
  )
  const bytes = [...files].map((file) => statSync(existsSync(`${file}.br`) ? `${file}.br` : file).size)
  const sum = bytes.reduce((total, one) => total + one, 0) / KIB
  return [
    {
      goal: 'W5',
      title: 'all files to the first chat, compressed',
      unit: 'KiB',
      series: [seriesOf(ours.name, sum)],
      verdicts: [below('≤ 312.5 KiB (320 kB)', sum, 312.5, 'KiB')],
    },
  ]
}
