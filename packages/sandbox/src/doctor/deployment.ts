/** Findings about a deployment's sandboxes, from the process that can see them. */
import { check, type Finding } from '#shared/base/finding'

/** For a backend without isolation. */
export function judgeIsolation(backend: string): Finding {
  return check('warn', 'isolation', 'Isolation', false, {
    ok: '',
    bad: `SANDLOT_SANDBOX=${backend} isolates nothing: commands run as you, on this machine`,
    fix: 'Unset SANDLOT_SANDBOX; it is for tests.',
  })
}

/** `isGate`: the agent has only the gate's socket. `host`: the engine's address for the agent. */
export function judgeGate(group: 'must' | 'warn', isGate: boolean, host: string): Finding {
  return check(group, 'engine-gate', 'Engine gate', isGate, {
    ok: 'only the gate holds the engine’s socket',
    bad: `the agent reaches the engine itself, at ${host}`,
    fix: 'Start Sandlot by ./sandlot up or by docker/compose.yaml: both put the gate between them.',
  })
}

export const OWNERLESS = { id: 'ownerless-volumes', name: 'Workspaces of nobody' } as const

/**
 * Volumes are never removed automatically; an ownerless one takes space until an operator removes
 * it.
 */
export function judgeOwnerless(volumes: readonly string[]): Finding {
  return check('warn', OWNERLESS.id, OWNERLESS.name, volumes.length === 0, {
    ok: 'none',
    bad: `neither the ledger nor the engine has an owner of ${volumes.join(', ')}`,
    fix: './sandlot sandbox prune removes them with all files in them, after a question. After a loss of the database restore that first.',
  })
}
