import { parseArgs } from 'node:util'
import { z } from 'zod'
import { childEnvironment } from '../processes/child-env.ts'
import { environmentFor, labelOf, runningRecord } from '../processes/children.ts'
import type { Command, Context } from '../context.ts'
import type { UpRecord } from '../processes/pid-file.ts'
import { isRunning } from '../processes/process-mark.ts'
import { isOnPostgres, replicaId, replicaNumbers } from '../deployment/replicas.ts'
import { programArguments } from '../programs/find-program.ts'
import { run } from '../programs/run.ts'
import { StepError } from '../steps.ts'

/** Printed by ai-agent's agent/drain.ts. */
const answer = z.object({
  drained: z.array(z.object({ id: z.string(), isThere: z.boolean(), left: z.array(z.string()) })),
  /** Live agents that take users over. */
  others: z.number(),
})

/**
 * Agents of this machine, or the one with an id, take no new users and hand over those that they
 * have. They run without users until they are stopped.
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
      'There is only one agent, so no other can take over: chats are in a file.',
      'Stop it with ./sandlot down; its prompts resume at the next start. Several agents need PostgreSQL (docs/postgresql.md).',
    )
  const running = runningRecord(config)
  const own = running === undefined ? [] : ownAgents(context, running)
  const ids = asked.replica === undefined ? own.map(({ id }) => id) : [asked.replica]
  if (ids.length === 0)
    throw new StepError(
      'Sandlot is not running on this machine, so there are no users to hand over.',
      'For an agent elsewhere: ./sandlot drain --replica ID; ./sandlot doctor lists them.',
    )
  const others = await steps.run(`Drain ${ids.join(', ')}`, async (step) => {
    const { drained, others: taking } = await ask(context, ids, (left) => step.doing(`remaining: ${left}`))
    const unknown = drained.filter(({ isThere }) => !isThere).map(({ id }) => id)
    if (unknown.length > 0)
      throw new StepError(
        `No agent ${unknown.join(' or ')} is running.`,
        './sandlot doctor lists the agents that run.',
      )
    const slow = drained.filter(({ left }) => left.length > 0)
    if (slow.length > 0)
      throw new StepError(
        `${slow.map(({ id, left }) => `${id} still has ${left.join(', ')}`).join('; ')} after 30 seconds.`,
        'Run the same command again to wait longer, or stop the agent: other agents resume the prompts.',
      )
    step.result('no users remain')
    return taking
  })
  if (others === 0) print('No other agent is running: prompts wait until one starts.')
  for (const { id, label, pid } of own)
    if (ids.includes(id))
      print(`${label} (${id}): stop it with kill ${pid}, start it again with ./sandlot up.`)
  return 0
}

function read(args: string[]): { replica?: string } | undefined {
  try {
    return parseArgs({ args, options: { replica: { type: 'string' } } }).values
  } catch {
    return undefined // an unknown argument
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

/** Runs ai-agent's own program, which has the tables. */
async function ask(
  { config }: Pick<Context, 'config'>,
  ids: readonly string[],
  doing: (left: string) => void,
): Promise<z.infer<typeof answer>> {
  const program = programArguments(config, 'ai-agent', 'agent/drain')
  const printed = await run(process.execPath, [...program, ...ids], {
    cwd: config.root,
    environment: childEnvironment('ai-agent', environmentFor('ai-agent', config)),
    fix: 'Its output is above. Check that the database of DATABASE_URL is running.',
    alsoGood: [1],
    onLine: (line) => {
      const left = /^left: (.+)/.exec(line)?.[1]
      if (left !== undefined) doing(left)
    },
  })
  return answer.parse(JSON.parse(printed))
}
