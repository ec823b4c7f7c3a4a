import { join } from 'node:path'
import { createInterface } from 'node:readline/promises'
import type { Environment } from '@sandlot/shared/config'
import { childEnvironment } from '../processes/child-env.ts'
import type { Context } from '../context.ts'
import { programArguments } from './find-program.ts'
import { run } from './run.ts'
import { StepError } from '../steps.ts'

/**
 * Runs ai-agent's own program, the only one that reads the ledger. Returns its output. @throws
 * StepError.
 */
export async function sandboxAdmin(args: string[], { config }: Pick<Context, 'config'>): Promise<unknown> {
  const program = programArguments(config, 'ai-agent', 'agent/sandboxes')
  const printed = await run(process.execPath, [...program, ...args], {
    cwd: config.root,
    environment: {
      ...engineEnvironment(config.environment),
      ...childEnvironment('ai-agent', config.environment),
    },
    log: join(config.data, 'log', 'sandbox-admin.log'),
    fix: 'Its output is above; ./sandlot doctor checks the engine.',
  })
  return JSON.parse(printed)
}

/** Variables for a direct connection to the engine: operators may need it when no gate runs. */
export function engineEnvironment(environment: Environment): Environment {
  const names = ['DOCKER_HOST', 'DOCKER_CERT_PATH', 'DOCKER_TLS_VERIFY']
  return Object.fromEntries(names.map((name) => [name, environment[name]]))
}

/** True after `--yes`, or a yes at the terminal. @throws StepError without a terminal. */
export async function confirmed(
  question: string,
  args: readonly string[],
  effect = 'This permanently deletes files',
): Promise<boolean> {
  if (args.includes('--yes')) return true
  if (!process.stdin.isTTY) {
    throw new StepError(
      `${effect} and needs confirmation, but there is no terminal to ask at.`,
      'Add --yes to confirm.',
    )
  }
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  try {
    return /^y(es)?$/i.test((await terminal.question(`${question} [y/N] `)).trim())
  } finally {
    terminal.close()
  }
}
