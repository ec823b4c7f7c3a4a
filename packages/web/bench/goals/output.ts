/** W4: a command that prints 50 MB while one looks at it. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { CDPSession } from 'playwright-core'
import { quantile, seriesOf } from '../../../../test/bench/measure.ts'
import { type Result, below } from '../../../../test/bench/report.ts'
import { type BenchContext, begin, drawn, watched } from '../context.ts'
import { SessionLog } from '../../test/fixture/session-log.ts'

const MB = 50
const PIECE = 64 * 1024
/** About 16 MB a second. */
const PAUSE_MS = 4
const MIB = 1024 * 1024

export async function output({ contenders: [ours] }: BenchContext): Promise<Result[]> {
  const log = new SessionLog()
  log.prompt('Print much.')
  log.call({
    toolCallId: 'c_flood',
    title: 'yes',
    name: 'run_shell_command',
    kind: 'execute',
    rawInput: { command: 'yes' },
  })
  log.started('c_flood')
  await using open = await ours.open('s_output', log)
  const { page, cdp, service } = open
  await drawn(page, 'Running')
  await sleep(1_000)
  const line = (at: number): string =>
    `\u001b[32m${String(at).padStart(8, '0')}\u001b[0m a line of a command that prints a lot\n`
  const before = await heapOf(cdp)
  await begin(page)
  let offset = 0
  for (let at = 0; offset < MB * 1_000_000; at++) {
    let data = ''
    while (data.length < PIECE) data += line(at)
    service.emit('s_output', [log.output('c_flood', offset, data)])
    // Live state is for later readers.
    log.live = []
    offset += data.length
    await sleep(PAUSE_MS)
  }
  await sleep(500)
  const { frames, tasks } = await watched(page)
  frames.sort((a, b) => a - b)
  const grown = (await heapOf(cdp)) - before
  const between = { name: ours.name, values: frames, failures: 0 }
  return [
    {
      goal: 'W4',
      title: `${MB} MB of live output of a command: between two frames`,
      series: [between],
      verdicts: [
        below('p99 ≤ 50 ms', quantile(between, 0.99), 50, 'ms'),
        below('the longest task (0: none over 50 ms)', Math.max(0, ...tasks), 50, 'ms'),
      ],
    },
    {
      goal: 'W4',
      title: `${MB} MB of live output of a command: what the page keeps`,
      unit: 'MiB',
      series: [seriesOf(ours.name, grown)],
      verdicts: [below('≤ 16 MiB', grown, 16, 'MiB')],
    },
  ]
}

async function heapOf(cdp: CDPSession): Promise<number> {
  await cdp.send('HeapProfiler.collectGarbage')
  return (await cdp.send('Runtime.getHeapUsage')).usedSize / MIB
}
