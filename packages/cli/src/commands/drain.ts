import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { z } from 'zod'
import { childEnvironment } from '../processes/child-env.ts'
import { environmentFor, labelOf, recordFile } from '../processes/children.ts'
import type { Command, Context } from '../context.ts'
import { readRecord, type UpRecord } from '../processes/pid-file.ts'
import { isRunning } from '../processes/process-mark.ts'
import { isOnPostgres, replicaId, replicaNumbers } from '../deployment/replicas.ts'
import { run } from '../programs/run.ts'
import { StepError } from '../steps.ts'

/** What ai-agent's program prints. */
const answer = z.object({
  drained: z.array(z.object({ id: z.string(), isThere: z.boolean(), left: z.array(z.string()) })),
  /** Living ones that take people over. */
  others: z.number(),
})

/**
 * Agents take no new people and hand over those that they have: this machine's, or that of an id,
 * wherever it runs. They stay, with no people, until they are ended.
 */
export const drain: Command = async (context) => {
  const { config, args, steps, print } = context
  const asked = read(args)
  if (asked === undefined) {
    print('Usage: ./sandlot drain [--replica ID]')
    return 2
  }
  if (!isOnPostgres(config))
    throw new StepError(
      'There is one agent, and none that could take over: chats are in a file.',
      './sandlot down ends it; its prompts go on at the next start. Several need PostgreSQL (docs/postgresql.md).',
    )
  const record = readRecord(recordFile(config))
  const running = record !== undefined && isRunning(record.up) ? record : undefined
  const own = running === undefined ? [] : ownAgents(context, running)
  const ids = asked.replica === undefined ? own.map(({ id }) => id) : [asked.replica]
  if (ids.length === 0)
    throw new StepError(
      'Sandlot is not running here, so there is nothing to hand over.',
      'For an agent elsewhere: ./sandlot drain --replica ID; ./sandlot doctor lists them.',
    )
  const others = await steps.run(`Drain ${ids.join(', ')}`, async (step) => {
    const { drained, others: taking } = await ask(context, ids, (left) => step.doing(`left: ${left}`))
    const unknown = drained.filter(({ isThere }) => !isThere).map(({ id }) => id)
    if (unknown.length > 0)
      throw new StepError(
        `No living agent is called ${unknown.join(' or ')}.`,
        './sandlot doctor lists those that there are.',
      )
    const slow = drained.filter(({ left }) => left.length > 0)
    if (slow.length > 0)
      throw new StepError(
        `${slow.map(({ id, left }) => `${id} still has ${left.join(', ')}`).join('; ')} after 30 seconds.`,
        'They are handed over as soon as they can be; run the same command again, or end the agent: their prompts go on elsewhere.',
      )
    step.result('nobody is left')
    return taking
  })
  if (others === 0) print('No other agent is there to take over: prompts wait until one starts.')
  for (const { id, label, pid } of own)
    if (ids.includes(id)) print(`${label} (${id}): kill ${pid} ends it, and ./sandlot up starts it anew.`)
  return 0
}

function read(args: string[]): { replica?: string } | undefined {
  try {
    return parseArgs({ args, options: { replica: { type: 'string' } } }).values
  } catch {
    return undefined // an argument that is none
  }
}

function ownAgents(
  { config }: Pick<Context, 'config'>,
  { children, replicas }: UpRecord,
): { id: string; label: string; pid: number }[] {
  return replicaNumbers(replicas ?? 1).flatMap((number) => {
    const label = labelOf('ai-agent', number)
    const mark = children[label]
    return mark === undefined || !isRunning(mark)
      ? []
      : [{ id: replicaId(config, number), label, pid: mark.pid }]
  })
}

/** By ai-agent's own program, which knows the tables. */
async function ask(
  { config }: Pick<Context, 'config'>,
  ids: readonly string[],
  doing: (left: string) => void,
): Promise<z.infer<typeof answer>> {
  const program = join(config.root, 'packages', 'ai-agent', 'dist', 'agent', 'drain.js')
  if (!existsSync(program))
    throw new StepError('Sandlot has not been built yet.', 'Run ./sandlot up once; it builds what is needed.')
  const printed = await run(process.execPath, [program, ...ids], {
    cwd: config.root,
    environment: childEnvironment('ai-agent', environmentFor('ai-agent', config)),
    fix: 'What it said is above. Is the database of DATABASE_URL there?',
    alsoGood: [1],
    onLine: (line) => {
      const left = /^left: (.+)/.exec(line)?.[1]
      if (left !== undefined) doing(left)
    },
  })
  return answer.parse(JSON.parse(printed))
}
