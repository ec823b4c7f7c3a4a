/** The sandbox that is configured, for the doctor, which makes one. The agent and the gate read the same names for themselves. */
import { readFileSync } from 'node:fs'
import type { SandboxLimits, SandboxProfile } from '@sandlot/sandbox/backend'
import { limitVariables, readLimits } from '@sandlot/sandbox/controller/limit-settings'
import { ConfigError, type Environment, readConfig, wholeNumber } from '@sandlot/shared/config'
import { z } from 'zod'

const schema = z.object({
  ...limitVariables(wholeNumber),
  SANDLOT_SANDBOX_RUNTIME: z.string().optional(),
  SANDLOT_SANDBOX_PROFILE: z.enum(['default', 'debug']).default('default'),
})

export interface SandboxSettings {
  limits: SandboxLimits
  /** Of those who have no other. */
  profile: SandboxProfile
  /** Absent: the engine's own. */
  runtime?: string
}

/** @throws ConfigError with every problem at once. */
export function readSandboxSettings(environment: Environment): SandboxSettings {
  const read = readConfig(schema, environment, (path) => readFileSync(path, 'utf8'))
  const problems: string[] = []
  const limits = readLimits(read, problems)
  if (problems.length > 0) throw new ConfigError(problems)
  return {
    limits,
    profile: read.SANDLOT_SANDBOX_PROFILE,
    runtime: read.SANDLOT_SANDBOX_RUNTIME,
  }
}
