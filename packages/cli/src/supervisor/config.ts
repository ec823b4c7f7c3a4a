import type { Environment } from '@sandlot/shared/config'

/** The environment of a program that `up` has given its own, `.env` included. */
export function inheritedEnvironment(): Environment {
  return { ...process.env }
}
