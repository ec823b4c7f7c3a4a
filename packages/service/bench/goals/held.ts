/** V6: for how long the event loops of both processes are held while somebody asks for something large. */
import { p50, seriesOf } from '../../../../test/bench/measure.ts'
import { type Result, below } from '../../../../test/bench/report.ts'
import { type BenchContext, EVENTS, LAST_PROMPT, openChat, promptIn } from '../context.ts'

const MEGABYTES = 64

export async function held(context: BenchContext): Promise<Result[]> {
  const { deployment, seeded } = context
  const person = deployment.personOf(0)
  const read = async (path: string): Promise<void> => {
    const answer = await deployment.get(path)
    if (!answer.ok) throw new Error(`${path}: ${answer.status}`)
    for await (const _ of answer.body ?? []);
  }
  const url = await printedOutput(context)
  const unopened = [...seeded.unopened]
  const asked: [string, () => Promise<unknown>][] = [
    ['the record of a prompt', () => read(`/api/sessions/${seeded.long}/prompts/${LAST_PROMPT}/export`)],
    [`reading back ${MEGABYTES} MB of output`, () => read(url)],
    [
      `a fork at the end of ${EVENTS} events`,
      async () => {
        const where = { promptId: LAST_PROMPT, where: 'after' }
        const answer = await deployment.post(`/api/sessions/${seeded.long}/fork`, where)
        if (!answer.ok) throw new Error(`fork: ${answer.status}`)
      },
    ],
    [
      `the first opening of ${EVENTS} events`,
      async () => (await openChat(deployment, person, unopened.pop() ?? '')).close(),
    ],
  ]
  const results: Result[] = []
  for (const [what, act] of asked) {
    const service = seriesOf('service')
    const agent = seriesOf('agent')
    for (let sample = 0; sample < seeded.unopened.length; sample++) {
      await deployment.loopDelays()
      await act()
      const delays = await deployment.loopDelays()
      service.values.push(delays.service)
      agent.values.push(delays.agent)
    }
    for (const one of [service, agent]) one.values.sort((a, b) => a - b)
    results.push({
      goal: 'V6',
      title: `the longest time that an event loop was held: ${what}`,
      series: [service, agent],
      verdicts: [
        below('service: p50 ≤ 50 ms', p50(service), 50, 'ms'),
        below('agent: p50 ≤ 50 ms', p50(agent), 50, 'ms'),
      ],
    })
  }
  return results
}

async function printedOutput({ deployment }: BenchContext): Promise<string> {
  let url = ''
  await promptIn(deployment, deployment.personOf(0), `print ${MEGABYTES}`, (event) => {
    url = event._meta.sandlot.outputInfo?.url ?? url
  })
  return url
}
