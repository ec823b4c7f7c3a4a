import { SANDBOX_BACKENDS } from '@sandlot/shared/config/sandbox-backends'
import { ConfigError } from '@sandlot/shared/config'
import type { Context } from '../context.ts'
import { askEngine } from '../setup/engine.ts'
import { createDockerBackend } from '@sandlot/sandbox/backends/docker/backend'
import { type CliConfig, engineOf } from '../config.ts'
import { deploymentOf } from './gate.ts'

/** Stops containers that still run after their agent ended: it was killed, or had no engine. */
export async function stopLeftSandboxes({ config, steps }: Pick<Context, 'config' | 'steps'>): Promise<void> {
  if (!SANDBOX_BACKENDS[config.backend].needsEngine) return
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
  const left = await stopSandboxes(config)
  if (left > 0) steps.note(`Stopped ${left} sandboxes that an earlier run left; workspaces are kept.`)
}

/**
 * Stop the containers of this deployment that still run, for an agent that could not do it itself:
 * it was killed, or did not end in time. Workspaces stay. Returns their number; rejects with a
 * `SandboxError`, or a `ConfigError` as `engineOf` throws it.
 */
async function stopSandboxes(config: CliConfig): Promise<number> {
  const deployment = deploymentOf(config)
  if (!SANDBOX_BACKENDS[config.backend].needsEngine || deployment === undefined) return 0
  const backend = createDockerBackend({ deployment, ...engineOf(config) })
  try {
    const running = (await backend.list({})).filter(({ state }) => state === 'running' || state === 'paused')
    await Promise.all(running.map(({ id }) => backend.stop(id)))
    return running.length
  } finally {
    await backend.inventory.close()
  }
}
