/**
 * Kinds of sandbox backends, one line each, with their differences before one is created. Without
 * zod, because the supervising process loads this.
 */

interface BackendTraits {
  /** False: commands run as the user of the process itself, and every view must say so. */
  isolates: boolean
  /** A Docker engine and its parts: the gate, the images, running containers. */
  needsEngine: boolean
  /** Warm sandboxes save time. */
  pool: boolean
}

export const SANDBOX_BACKENDS = {
  docker: { isolates: true, needsEngine: true, pool: true },
  'local-process': { isolates: false, needsEngine: false, pool: false },
} as const satisfies Record<string, BackendTraits>

export type SandboxBackendName = keyof typeof SANDBOX_BACKENDS

/** Values of `SANDLOT_SANDBOX`. */
export const SANDBOX_BACKEND_NAMES = Object.keys(SANDBOX_BACKENDS) as SandboxBackendName[]

/** The problem of a configuration that names a backend of tests outside of one. */
export function testBackendProblem(name: SandboxBackendName, isTest: boolean): string | undefined {
  if (SANDBOX_BACKENDS[name].isolates || isTest) return undefined
  return `SANDLOT_SANDBOX=${name} isolates nothing, and starts only in tests, with SANDLOT_TEST_LOCAL_PROCESS=true. Unset SANDLOT_SANDBOX.`
}
