import type { SandboxState } from '../../backend.ts'
import { LABEL } from '../../names.ts'

/** The engine's word for a container's state in ours. */
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

/** Whether these labels say that a container or volume is a sandbox's of this deployment. */
export function isOurs(deployment: string, labels: Record<string, string> | null | undefined): boolean {
  return labels?.[LABEL.deployment] === deployment && labels[LABEL.role] === 'sandbox'
}
