import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline/promises'
import type { Environment } from '@sandlot/shared/config'
import { childEnvironment } from '../processes/child-env.ts'
import type { Context } from '../context.ts'
import { run } from './run.ts'
import { StepError } from '../steps.ts'

/**
 * Runs ai-agent's own program, which alone may read the ledger. Returns what it printed. Rejects
 * with a `StepError`.
 */
export async function sandboxAdmin(args: string[], { config }: Pick<Context, 'config'>): Promise<unknown> {
  const program = join(config.root, 'packages', 'ai-agent', 'dist', 'agent', 'sandboxes.js')
  if (!existsSync(program)) {
    throw new StepError(
      'Sandlot has not been built yet.',
      'Run ./sandlot up once; without it there is nothing to see.',
    )
  }
  const printed = await run(process.execPath, [program, ...args], {
    cwd: config.root,
    environment: {
      ...engineEnvironment(config.environment),
      ...childEnvironment('ai-agent', config.environment),
    },
    log: join(config.data, 'log', 'sandbox-admin.log'),
    fix: 'Look at what it says above; ./sandlot doctor checks the engine.',
  })
  return JSON.parse(printed)
}

/**
 * Directly to the engine, as every command of an operator: there may be no gate when this is
 * needed.
 */
export function engineEnvironment(environment: Environment): Environment {
  const names = ['DOCKER_HOST', 'DOCKER_CERT_PATH', 'DOCKER_TLS_VERIFY']
  return Object.fromEntries(names.map((name) => [name, environment[name]]))
}

/** Confirmed at the terminal or by `--yes`. Without either: false. */
export async function confirmed(
  question: string,
  args: readonly string[],
  what = 'This removes files for good',
): Promise<boolean> {
  if (args.includes('--yes')) return true
  if (!process.stdin.isTTY) {
    throw new StepError(
      `${what}, and there is nobody at the terminal to ask.`,
      'Add --yes if that is what you want.',
    )
  }
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  try {
    return /^y(es)?$/i.test((await terminal.question(`${question} [y/N] `)).trim())
  } finally {
    terminal.close()
  }
}
