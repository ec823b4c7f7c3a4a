import type { SandboxState } from '../../backend.ts'
import { LABEL } from '../../names.ts'

/** Maps the engine's state of a container to ours. */
export function normalState(status: string): SandboxState {
  switch (status) {
    case 'created':
      return 'created'
    case 'running':
    case 'restarting':
      return 'running'
    case 'paused':
      return 'paused'
    case 'removing':
    // Its removal failed half-way; the engine never starts it again.
    case 'dead':
      return 'removing'
    default:
      return 'stopped'
  }
}

/** True for labels of a sandbox's container or volume of this deployment. */
export function isOurs(deployment: string, labels: Record<string, string> | null | undefined): boolean {
  return labels?.[LABEL.deployment] === deployment && labels[LABEL.role] === 'sandbox'
}
