/** The result of one check: of a machine, its engine, or a sandbox made there. */

/**
 * `must`: nothing may run if it fails. `warn`: it runs with weaker isolation than possible.
 * `report`: information only.
 */
export type Group = 'must' | 'warn' | 'report'

export type Finding = {
  /** Short and stable, for scripts: `seccomp`, `engine-version`. */
  id: string
  group: Group
  name: string
  /** One plain sentence without a full stop. */
  message: string
} & (
  | { state: 'ok' }
  /** `unknown`: not checkable, for example the kernel settings of a remote host. */
  | { state: 'unknown' }
  /** `fix`: how to repair it. */
  | { state: 'failed'; fix: string }
)

/** A check with the outcome as its only variable. */
export function check(
  group: Group,
  id: string,
  name: string,
  holds: boolean,
  texts: { ok: string; bad: string; fix: string },
): Finding {
  return holds
    ? { id, group, name, message: texts.ok, state: 'ok' }
    : { id, group, name, message: texts.bad, state: 'failed', fix: texts.fix }
}

export function failed(group: Group, id: string, name: string, message: string, fix: string): Finding {
  return { id, group, name, message, state: 'failed', fix }
}

export function ok(group: Group, id: string, name: string, message: string): Finding {
  return { id, group, name, message, state: 'ok' }
}

export function report(id: string, name: string, message: string): Finding {
  return { id, group: 'report', name, message, state: 'ok' }
}

export function unknown(group: Group, id: string, name: string, message: string): Finding {
  return { id, group, name, message, state: 'unknown' }
}

/** Commands may run: no `must` has failed. */
export function isSafe(findings: readonly Finding[]): boolean {
  return !findings.some(({ group, state }) => group === 'must' && state === 'failed')
}

const ORDER: readonly Group[] = ['must', 'warn', 'report']

/** Required checks first. */
export function inOrder(findings: readonly Finding[]): Finding[] {
  return findings.toSorted((one, other) => ORDER.indexOf(one.group) - ORDER.indexOf(other.group))
}
