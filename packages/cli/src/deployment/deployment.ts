import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { CliConfig } from '../config.ts'
import { StepError } from '../steps.ts'

/**
 * For commands about what is there: nothing is made by asking, not even a log.
 * @throws StepError where no Sandlot was ever started with this data and these keys.
 */
export function requireDeployment({ data, keys }: Pick<CliConfig, 'data' | 'keys'>): void {
  if (!existsSync(join(keys, 'deployment.json'))) throw noDeployment(data)
}

export function noDeployment(data: string): StepError {
  return new StepError(
    `There is no Sandlot in ${data}; nothing was done.`,
    'Set SANDLOT_DATA to the data folder of yours. It is there once ./sandlot up has run.',
  )
}
