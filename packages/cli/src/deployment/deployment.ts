import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { StepError } from '../steps.ts'

/**
 * For commands about what is there: nothing is made by asking, not even a log.
 * @throws StepError where no Sandlot was ever started with `data` (absolute).
 */
export function requireDeployment(data: string): void {
  if (!existsSync(join(data, 'keys', 'deployment.json'))) throw noDeployment(data)
}

export function noDeployment(data: string): StepError {
  return new StepError(
    `There is no Sandlot in ${data}; nothing was done.`,
    'Set SANDLOT_DATA to the data folder of yours. It is there once ./sandlot up has run.',
  )
}
