import { ConfigError } from '@sandlot/shared/config'
import type { Context } from './context.ts'
import { askEngine } from './engine.ts'
import { stopSandboxes } from './stop-sandboxes.ts'

/** Containers that still run though their agent ended: it was killed, or had no engine just then. */
export async function stopLeftSandboxes({ config, steps }: Pick<Context, 'config' | 'steps'>): Promise<void> {
  if (config.backend !== 'docker') return
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
