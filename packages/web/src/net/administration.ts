/** The deployment as a whole, for administrators. Failures are `ApiError`s. */
import { type ConfigurationView, configurationView } from '@sandlot/shared/admin/configuration'
import {
  type DeploymentRules,
  type NewDeploymentRule,
  deploymentRules,
} from '@sandlot/shared/admin/deployment-rules'
import {
  MOST_MEASURED,
  type SandboxUses,
  type SandboxesView,
  sandboxUses,
  sandboxesView,
} from '@sandlot/shared/admin/sandboxes'
import { type ToolStatsView, toolStatsView } from '@sandlot/shared/admin/tool-stats'
import { z } from 'zod'
import { call } from './http.ts'

const nothing = z.unknown()

export function fetchToolStats(): Promise<ToolStatsView> {
  return call(toolStatsView, 'GET', '/api/admin/tools')
}

export function fetchSandboxes(): Promise<SandboxesView> {
  return call(sandboxesView, 'GET', '/api/admin/sandboxes')
}

/** Current use of these sandboxes, of those that are awake. */
export async function fetchUses(userIds: readonly string[]): Promise<SandboxUses['uses']> {
  let uses: SandboxUses['uses'] = {}
  for (let from = 0; from < userIds.length; from += MOST_MEASURED) {
    const asked = new URLSearchParams(userIds.slice(from, from + MOST_MEASURED).map((id) => ['user', id]))
    const answer = await call(sandboxUses, 'GET', `/api/admin/sandboxes/use?${asked.toString()}`)
    uses = { ...uses, ...answer.uses }
  }
  return uses
}

export async function actOnSandbox(userId: string, act: 'stop' | 'reset'): Promise<void> {
  await call(nothing, 'POST', `/api/admin/sandboxes/${encodeURIComponent(userId)}/${act}`)
}

export function fetchDeploymentRules(): Promise<DeploymentRules> {
  return call(deploymentRules, 'GET', '/api/admin/rules')
}

export async function addDeploymentRule(rule: NewDeploymentRule): Promise<void> {
  await call(nothing, 'POST', '/api/admin/rules', rule)
}

export async function revokeDeploymentRule(id: string): Promise<void> {
  await call(nothing, 'DELETE', `/api/admin/rules/${encodeURIComponent(id)}`)
}

export function fetchConfiguration(): Promise<ConfigurationView> {
  return call(configurationView, 'GET', '/api/admin/configuration')
}
