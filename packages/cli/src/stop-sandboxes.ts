import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createDockerBackend } from '@sandlot/sandbox/backends/docker/backend'
import { z } from 'zod'
import type { CliConfig } from './config.ts'

/** The part of ai-agent's key file that is no secret. */
const deploymentFile = z.object({ id: z.string() })

/**
 * Stop the containers of this deployment that still run, for an agent that could not do it itself: it was killed, or
 * did not end in time. Workspaces stay. Answers how many there were; rejects with a `SandboxError`.
 */
export async function stopSandboxes(config: CliConfig): Promise<number> {
  const file = join(config.data, 'keys', 'deployment.json')
  if (config.backend !== 'docker' || !existsSync(file)) return 0
  const { id: deployment } = deploymentFile.parse(JSON.parse(readFileSync(file, 'utf8')))
  const backend = createDockerBackend({
    deployment,
    ...(config.dockerHost === undefined ? {} : { dockerHost: config.dockerHost }),
  })
  try {
    const running = (await backend.list({})).filter(({ state }) => state === 'running' || state === 'paused')
    await Promise.all(running.map(({ id }) => backend.stop(id)))
    return running.length
  } finally {
    await backend.close()
  }
}
