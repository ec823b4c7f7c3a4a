import { createDockerBackend } from '@sandlot/sandbox/backends/docker/backend'
import { ConfigError } from '@sandlot/shared/config'
import { engineOf } from '../config.ts'
import type { Context } from '../context.ts'
import { askEngine } from '../setup/engine.ts'
import { deploymentOf, needsGate } from './gate.ts'

/**
 * Stops containers that still run after their agent ended: it was killed, or had no engine.
 * Workspaces stay. Rejects with a `SandboxError`.
 */
export async function stopLeftSandboxes({ config, steps }: Pick<Context, 'config' | 'steps'>): Promise<void> {
  if (!needsGate(config)) return
  try {
    // Without an engine nothing of ours runs on it either.
    if ((await askEngine(config)) instanceof Error) return
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    steps.note(
      `! The engine cannot be asked whether sandboxes are left running: ${error.problems.join('; ')}`,
    )
    return
  }
  const deployment = deploymentOf(config)
  if (deployment === undefined) return
  const backend = createDockerBackend({ deployment, ...engineOf(config) })
  try {
    const left = (await backend.list({})).filter(({ state }) => state === 'running' || state === 'paused')
    await Promise.all(left.map(({ id }) => backend.stop(id)))
    if (left.length > 0)
      steps.note(`Stopped ${left.length} sandboxes that an earlier run left; workspaces are kept.`)
  } finally {
    await backend.inventory.close()
  }
}
