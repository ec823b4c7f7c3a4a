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

/** The same in words, for the documents. */
export const SANDBOX_BACKENDS_MEANING = SANDBOX_BACKEND_NAMES.map((name) =>
  SANDBOX_BACKENDS[name].isolates ? name : `${name} (isolates nothing; tests only)`,
).join(' | ')
