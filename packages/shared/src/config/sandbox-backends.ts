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
  /** Many hosts, which pull the image by its digest; no limit of one host applies. */
  manyHosts: boolean
}

export const SANDBOX_BACKENDS = {
  docker: { isolates: true, needsEngine: true, pool: true, manyHosts: false },
  kubernetes: { isolates: true, needsEngine: false, pool: true, manyHosts: true },
  'local-process': { isolates: false, needsEngine: false, pool: false, manyHosts: false },
} as const satisfies Record<string, BackendTraits>

export type SandboxBackendName = keyof typeof SANDBOX_BACKENDS

/** Values of `SANDLOT_SANDBOX`. */
export const SANDBOX_BACKEND_NAMES = Object.keys(SANDBOX_BACKENDS) as SandboxBackendName[]

/** The problem of a configuration that names a backend of tests outside of one. */
export function testBackendProblem(name: SandboxBackendName, isTest: boolean): string | undefined {
  if (SANDBOX_BACKENDS[name].isolates || isTest) return undefined
  return `SANDLOT_SANDBOX=${name} isolates nothing, and starts only in tests, with SANDLOT_TEST_LOCAL_PROCESS=true. Unset SANDLOT_SANDBOX.`
}

/** The problem of an image that nodes cannot pull, or that could change unseen. */
export function imageProblem(name: SandboxBackendName, image: string | undefined): string | undefined {
  if (!SANDBOX_BACKENDS[name].manyHosts || /@sha256:[0-9a-f]{64}$/.test(image ?? '')) return undefined
  return `SANDLOT_SANDBOX_IMAGE: ${image ?? 'not set'}; SANDLOT_SANDBOX=${name} needs an image that its nodes can pull, by digest, like registry.example.org/sandlot/sandbox@sha256:… (docs/kubernetes.md)`
}
