/**
 * The kinds of sandbox backends, one line each: whatever differs between them before one is made.
 * Without zod, because the supervising process loads this.
 */

interface BackendTraits {
  /** False: commands run as the user of the process itself, and every view must say so. */
  isolates: boolean
  /** A Docker engine, with what belongs to it: the gate, the images, containers left running. */
  needsEngine: boolean
  /** Whether sandboxes kept ready save time. */
  pool: boolean
}

export const SANDBOX_BACKENDS = {
  docker: { isolates: true, needsEngine: true, pool: true },
  'local-process': { isolates: false, needsEngine: false, pool: false },
} as const satisfies Record<string, BackendTraits>

export type SandboxBackendName = keyof typeof SANDBOX_BACKENDS

/** What `SANDLOT_SANDBOX` may be. */
export const SANDBOX_BACKEND_NAMES = Object.keys(SANDBOX_BACKENDS) as SandboxBackendName[]

/** The problem of a configuration that names a backend of tests outside of one. */
export function testBackendProblem(name: SandboxBackendName, isTest: boolean): string | undefined {
  if (SANDBOX_BACKENDS[name].isolates || isTest) return undefined
  return `SANDLOT_SANDBOX=${name} isolates nothing, and starts only in tests, with SANDLOT_TEST_LOCAL_PROCESS=true. Unset SANDLOT_SANDBOX.`
}
