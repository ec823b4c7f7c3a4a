import { copyFile, mkdir, mkdtemp, rename, rm } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { hasCode } from '@sandlot/shared/base/errors'
import { deploymentKeys } from '@sandlot/shared/node/deployment-keys'
import { AGENT_TOKEN, ensureSecret, SERVICE_SECRETS } from '@sandlot/shared/node/secret-file'
import { z } from 'zod'
import { childEnvironment } from '../processes/child-env.ts'
import type { Command, Context } from '../context.ts'
import { noDeployment, requireDeployment } from '../deployment/deployment.ts'
import { programArguments } from '../programs/find-program.ts'
import { run } from '../programs/run.ts'
import { StepError } from '../steps.ts'

/** Printed by ai-agent's agent/keys.ts. */
const answer = z.discriminatedUnion('rotated', [
  z.object({ rotated: z.literal(true), resealed: z.int(), lost: z.array(z.string()) }),
  z.object({
    rotated: z.literal(false),
    reason: z.enum(['no_deployment', 'running']),
    folder: z.string(),
    agents: z.array(z.string()).optional(),
  }),
])
/** Its exit code when nothing was changed; the answer has the reason. */
const NOTHING_CHANGED = 3

/** `rotate` seals every secret of every user with a new key; `new` makes keys for a cluster. */
export const keys: Command = async (context) => {
  const [act, folder = 'sandlot-keys', ...rest] = context.args
  if (act === 'rotate' && context.args.length === 1) return rotate(context)
  if (act === 'new' && rest.length === 0) return makeFolders(resolve(folder), context)
  context.print('Usage: ./sandlot keys rotate\n       ./sandlot keys new [FOLDER]')
  return 2
}

/**
 * Makes `folder` with the keys of agents and those of services, or nothing.
 * @throws StepError where it is there already: new keys open nothing that old ones have sealed.
 */
async function makeFolders(folder: string, { print, steps }: Pick<Context, 'print' | 'steps'>) {
  await mkdir(dirname(folder), { recursive: true })
  const draft = await mkdtemp(`${folder}-`)
  try {
    const [agent, service] = [join(draft, 'agent'), join(draft, 'service')]
    deploymentKeys(agent)
    for (const name of SERVICE_SECRETS) await ensureSecret(service, name)
    await ensureSecret(agent, AGENT_TOKEN)
    await copyFile(join(agent, AGENT_TOKEN), join(service, AGENT_TOKEN))
    await rename(draft, folder)
  } catch (error) {
    await rm(draft, { recursive: true })
    if (!['ENOTEMPTY', 'EEXIST', 'ENOTDIR'].some((code) => hasCode(error, code))) throw error
    throw new StepError(
      `${folder} is not empty; nothing was changed.`,
      'Name another folder: ./sandlot keys new FOLDER. New keys open nothing that a Sandlot has stored with its own.',
    )
  }
  steps.note(
    `Keys of a new Sandlot are in ${folder}. Keep a copy: without them no home and no secret can be opened.`,
  )
  for (const part of ['agent', 'service'])
    print(
      `kubectl --namespace sandlot create secret generic sandlot-${part}-keys --from-file='${join(folder, part)}'`,
    )
  return 0
}

async function rotate({ config, print }: Context): Promise<number> {
  requireDeployment(config)
  const program = programArguments(config, 'ai-agent', 'agent/keys')
  const printed = await run(process.execPath, [...program, 'rotate'], {
    cwd: config.root,
    environment: childEnvironment('ai-agent', config.environment),
    log: join(config.data, 'log', 'keys.log'),
    fix: 'Nothing is lost. Run the same command again.',
    alsoGood: [NOTHING_CHANGED],
  })
  return reportResult(printed, print)
}

/**
 * Reports the result from the one line that it printed. Returns the exit code.
 * @throws StepError where nothing was changed, with what to do about that.
 */
export function reportResult(printed: string, print: (line: string) => void): number {
  const said = answer.parse(JSON.parse(printed))
  if (!said.rotated) throw nothingChanged(said)
  const { resealed, lost } = said
  print(
    `Rotated the key; ${resealed} ${resealed === 1 ? 'secret is' : 'secrets are'} sealed with the new one.`,
  )
  for (const name of lost) print(`${name} cannot be decrypted with any available key. Set it again.`)
  return lost.length === 0 ? 0 : 1
}

function nothingChanged({
  reason,
  folder,
  agents,
}: Extract<z.infer<typeof answer>, { rotated: false }>): StepError {
  if (reason === 'no_deployment') return noDeployment(folder)
  return agents === undefined
    ? new StepError(
        'Sandlot is running; nothing was changed.',
        'Stop it with ./sandlot down, then run this again.',
      )
    : new StepError(
        `Sandlot is running (${agents.join(', ')}); nothing was changed.`,
        'Run ./sandlot down on each machine that has one of these agents, then run this again.',
      )
}
