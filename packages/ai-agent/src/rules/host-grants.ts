/**
 * Hosts that people let their sandbox reach beside the operator's list. Kept in memory: after a restart the agent asks
 * again, and what was remembered answers.
 */
import { matchesHost } from './hosts.ts'

export class HostGrants {
  readonly #granted = new Map<string, Set<string>>()

  /** `port` undefined: every port. */
  allow(userId: string, host: string, port: number | undefined): void {
    const known = this.#granted.get(userId) ?? new Set()
    known.add(port === undefined ? host : `${host}:${port}`)
    this.#granted.set(userId, known)
  }

  allows(userId: string, { host, port }: { host: string; port: number }): boolean {
    const known = this.#granted.get(userId)
    return known !== undefined && [...known].some((pattern) => matchesHost(pattern, host, port))
  }
}
