import type { Environment } from '@sandlot/shared/config'

/** The environment that `up` has passed on, with `.env`. */
export function inheritedEnvironment(): Environment {
  return { ...process.env }
}
