/** Defaults of the deployment, for fixtures. */
import type { DeploymentSettings } from '../../src/account/agent-settings.ts'

interface Change extends Partial<Omit<DeploymentSettings, 'limits'>> {
  limits?: Partial<DeploymentSettings['limits']> | undefined
}

export function deploymentSettings(change: Change = {}): DeploymentSettings {
  return {
    tools: true,
    mcpServers: [],
    models: ['main'],
    network: { mode: 'none', hosts: [], ask: false },
    ...change,
    limits: {
      turns: 100,
      calls: 0,
      tokens: 0,
      cost: 0,
      promptSeconds: 0,
      turnsPerDay: 0,
      callsPerDay: 0,
      tokensPerDay: 0,
      costPerDay: 0,
      secondsPerDay: 0,
      turnsPerMonth: 0,
      callsPerMonth: 0,
      tokensPerMonth: 0,
      costPerMonth: 0,
      secondsPerMonth: 0,
      ...change.limits,
    },
  }
}
