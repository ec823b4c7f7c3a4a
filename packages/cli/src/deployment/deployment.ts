import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { CliConfig } from '../config.ts'
import { StepError } from '../steps.ts'

/**
 * Called before a command writes anything, even a log.
 * @throws StepError if no Sandlot was ever started with this data and these keys.
 */
export function requireDeployment({ data, keys }: Pick<CliConfig, 'data' | 'keys'>): void {
  if (!existsSync(join(keys, 'deployment.json'))) throw noDeployment(data)
}

export function noDeployment(data: string): StepError {
  return new StepError(
    `No Sandlot found in ${data}; nothing was done.`,
    'Set SANDLOT_DATA to your data folder. The first ./sandlot up creates it.',
  )
}
