import { join } from 'node:path'
import { z } from 'zod'
import { childEnvironment } from '../processes/child-env.ts'
import type { Command } from '../context.ts'
import { noDeployment, requireDeployment } from '../deployment/deployment.ts'
import { findBuilt } from '../programs/find-program.ts'
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

/** `keys rotate`: seals every secret of every user with a new key. */
export const keys: Command = async ({ config, args, print }) => {
  if (args.length !== 1 || args[0] !== 'rotate') {
    print('Usage: ./sandlot keys rotate')
    return 2
  }
  requireDeployment(config)
  const program = findBuilt(config, 'ai-agent', 'agent', 'keys.js')
  const printed = await run(process.execPath, [program, 'rotate'], {
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
