/** Parts of a sandbox that are the same on every engine. */
import type { SandboxSpec } from '../backend.ts'
import { SandboxError } from '../errors.ts'
import { checkLimits } from '../limits.ts'
import { UID_RANGE } from '../names.ts'

export const WORKSPACE = '/workspace'

/**
 * The whole environment of PID 1, without the controller's own. SHELL is set because bash otherwise
 * reads all of /etc/passwd at every start, which doubles the time of a `true`.
 */
export const ENVIRONMENT = [
  `PATH=${WORKSPACE}/.local/bin:/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin`,
  `HOME=${WORKSPACE}`,
  'SHELL=/bin/bash',
  'LANG=C.UTF-8',
  'TERM=xterm-256color',
  'TZ=UTC',
  'SANDBOX=1',
]

/** Throws `invalid_arguments` for invalid limits or an invalid uid. */
export function checkSpec(spec: SandboxSpec): void {
  if (!Number.isInteger(spec.uid) || spec.uid < UID_RANGE.first || spec.uid > UID_RANGE.last) {
    throw new SandboxError(
      'invalid_arguments',
      `A sandbox's uid must be ${UID_RANGE.first}–${UID_RANGE.last}, not ${spec.uid}.`,
    )
  }
  checkLimits(spec.limits)
}
