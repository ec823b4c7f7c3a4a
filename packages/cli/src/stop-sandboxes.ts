import { createDockerBackend } from '@sandlot/sandbox/backends/docker/backend'
import { type CliConfig, engineOf } from './config.ts'
import { deploymentOf } from './gate.ts'

/**
 * Stop the containers of this deployment that still run, for an agent that could not do it itself: it was killed, or
 * did not end in time. Workspaces stay. Answers how many there were; rejects with a `SandboxError`, or a
 * `ConfigError` as `engineOf` throws it.
 */
export async function stopSandboxes(config: CliConfig): Promise<number> {
  const deployment = deploymentOf(config)
  if (config.backend !== 'docker' || deployment === undefined) return 0
  const backend = createDockerBackend({ deployment, ...engineOf(config) })
  try {
    const running = (await backend.list({})).filter(({ state }) => state === 'running' || state === 'paused')
    await Promise.all(running.map(({ id }) => backend.stop(id)))
    return running.length
  } finally {
    await backend.inventory.close()
  }
}
