/**
 * Why a sandbox could not do something, or how a command ended there → why the call failed. The
 * only such tables.
 */
import type { FailureReason } from '@sandlot/shared/chat/reasons'
import type { SandboxErrorCode } from '@sandlot/sandbox/errors'
import type { CommandExit, ExitCause } from '@sandlot/sandbox/sandbox'

export const REASON_OF_SANDBOX_ERROR: Record<SandboxErrorCode, FailureReason> = {
  engine_unavailable: 'sandbox_unavailable',
  unsafe_host: 'sandbox_unavailable',
  limit_reached: 'sandbox_unavailable',
  host_full: 'sandbox_unavailable',
  host_disk_low: 'disk_quota',
  ledger: 'sandbox_unavailable',
  // A type of its own in the next version: the previous one cannot read another value.
  workspace_missing: 'sandbox_unavailable',
  workspace_unreachable: 'sandbox_unavailable',
  sandbox_lost: 'sandbox_lost',
  out_of_memory: 'out_of_memory',
  protocol: 'sandbox_lost',
  // Another controller has the sandbox now; commands that we started there continue without us.
  fenced: 'interrupted',
  invalid_arguments: 'invalid_arguments',
  path_outside: 'path_outside',
  path_changed: 'denied',
  pids_exhausted: 'pids_exhausted',
  disk_quota: 'disk_quota',
  not_found: 'tool_error',
  not_regular: 'tool_error',
  exists: 'tool_error',
  permission: 'tool_error',
  too_large: 'tool_error',
  start_failed: 'tool_error',
  cancelled: 'cancelled',
  timeout: 'timeout',
}

/** `undefined`: it ran to its own end, so the call is completed. */
export const REASON_OF_EXIT: Record<ExitCause, FailureReason | undefined> = {
  exited: undefined,
  signal: undefined,
  timeout: 'timeout',
  cancel: 'cancelled',
  oom: 'out_of_memory',
  output_limit: 'output_limit',
  disk_quota: 'disk_quota',
  shim_killed: 'interrupted',
}

/** `, 3 processes in 1.2 s`, as far as the sandbox said. */
export function stoppedWords({ stopped }: Pick<CommandExit, 'stopped'>): string {
  if (stopped === undefined) return ''
  const { processes, tookMs } = stopped
  const took = tookMs < 1_000 ? `${Math.round(tookMs)} ms` : `${(tookMs / 1_000).toFixed(1)} s`
  return `, ${processes} ${processes === 1 ? 'process' : 'processes'} in ${took}`
}

/** A kill is counted in the whole sandbox, so whose process it was is not known. */
export function memoryNote({ cause, oomKills }: Pick<CommandExit, 'cause' | 'oomKills'>): string | undefined {
  if (oomKills === undefined || cause === 'oom') return undefined
  const killed = oomKills === 1 ? 'a process in it was' : `${oomKills} processes in it were`
  return `The sandbox ran out of memory while this ran, and ${killed} killed. If that was a part of this command, its result is incomplete.`
}
