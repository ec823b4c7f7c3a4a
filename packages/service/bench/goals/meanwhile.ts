/** V12: what other members wait for while one's command prints much, or the record of a prompt is exported. */
import { type Series, inTurns, p99 } from '../../../../test/bench/measure.ts'
import { startProgram } from '../../../../test/bench/program.ts'
import { type Result, below } from '../../../../test/bench/report.ts'
import { type BenchContext, LAST_PROMPT, firstToken } from '../context.ts'
import { type Person, SOCKETS_PER_USER } from '../deployment.ts'

const LOAD = new URL('../load.ts', import.meta.url)
const ALONE = 'alone'
/** The output last: a command still prints after the load's process has ended. */
const LOADS = [ALONE, 'the record of a prompt', '200 MB of output']
const MOST_MS = 50

export async function meanwhile(context: BenchContext): Promise<Result[]> {
  const { deployment, seeded } = context
  const { cookie } = deployment.personOf(0).headers
  const record = `/api/sessions/${seeded.long}/prompts/${LAST_PROMPT}/export`
  const found: [list: Series, token: Series][] = []
  for (const load of LOADS) {
    await using _ =
      load === ALONE ? undefined : await startProgram(LOAD, load, deployment.origin, cookie, record)
    found.push(await askedOf(load, context))
  }
  return [
    resultOf(
      'the list of chats',
      found.map(([list]) => list),
    ),
    resultOf(
      'the first token of a new chat, from the message',
      found.map(([, token]) => token),
    ),
  ]
}

/** Both by each other member in turn, who waits for one at a time. */
async function askedOf(name: string, { deployment, samples, many }: BenchContext): Promise<[Series, Series]> {
  let asked = 0
  const next = (): Person =>
    deployment.personOf(SOCKETS_PER_USER + ((asked++ * SOCKETS_PER_USER) % (many - SOCKETS_PER_USER)))
  return inTurns(
    [
      {
        name,
        once: async () => {
          const answer = await deployment.get('/api/sessions', next())
          await answer.text()
          if (!answer.ok) throw new Error(`the list of chats: ${answer.status}`)
        },
      },
      {
        name,
        once: async () => {
          const socket = await deployment.socket(next())
          const { first } = await firstToken(socket)
          socket.close()
          return first
        },
      },
    ],
    samples * 2,
    // Each person's first prompt is not measured.
    Math.ceil(many / SOCKETS_PER_USER),
  )
}

function resultOf(what: string, series: Series[]): Result {
  return {
    goal: 'V12',
    title: `another member’s wait for ${what}, while one member has`,
    series,
    verdicts: series
      .filter(({ name }) => name !== ALONE)
      .map((one) => below(`${one.name}: p99 ≤ ${MOST_MS} ms`, p99(one), MOST_MS, 'ms')),
  }
}
