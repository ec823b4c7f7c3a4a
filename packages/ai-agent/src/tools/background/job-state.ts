/** State of a background command, from the sandbox that runs it. */
import type { ExitInfo } from '@sandlot/shared/chat/call'
import type { FailureReason } from '@sandlot/shared/chat/reasons'
import type { CommandExit, Sandbox } from '@sandlot/sandbox/sandbox'
import { REASON_OF_EXIT } from '../sandbox-reasons.ts'
import type { Job } from './jobs.ts'

export type JobState =
  | { state: 'running' }
  /** `forget`: the sandbox need not remember how it ended any more. */
  | { state: 'ended'; exit: CommandExit; forget: () => void }
  /** The sandbox was stopped or reset, or has forgotten it: how it ended is unknown. */
  | { state: 'gone' }

export async function jobState(sandbox: Sandbox, job: Job): Promise<JobState> {
  if (sandbox.bootId !== job.boot) return { state: 'gone' }
  const known = (await sandbox.commands()).find(({ id }) => id === job.command)
  if (known?.state === 'running') return { state: 'running' }
  // If the store then lost the reported end, the sandbox still has it.
  const command = await sandbox.attach(job.command, {}, { acknowledged: !job.over })
  if (command === undefined) return { state: 'gone' }
  const exit = await command.exit
  return { state: 'ended', exit, forget: () => command.acknowledge({ stdout: exit.bytes.stdout }) }
}

/** For the log and the screen. */
export function endOf(state: Exclude<JobState, { state: 'running' }>): {
  exit?: ExitInfo
  reason?: FailureReason
} {
  if (state.state === 'gone') return { reason: 'sandbox_lost' }
  const { code, signal, cause } = state.exit
  const reason = REASON_OF_EXIT[cause]
  return {
    ...(signal === undefined ? (code === undefined ? {} : { exit: { code } }) : { exit: { signal } }),
    reason,
  }
}

/** A kill is counted in the whole sandbox. */
const OUT_OF_MEMORY = ' (the sandbox ran out of memory while it ran, so its result may be incomplete)'

/** The end, in words for the model. */
export function endWords(state: { state: 'gone' } | { state: 'ended'; exit: CommandExit }): string {
  if (state.state === 'gone') return 'ended together with its sandbox; its exit code is not known'
  const { code, signal, cause, oomKills } = state.exit
  switch (cause) {
    case 'exited':
      return `ended with exit code ${code ?? '?'}${oomKills === undefined ? '' : OUT_OF_MEMORY}`
    case 'timeout':
      return 'was ended because it had run for a day'
    case 'cancel':
      return 'was stopped'
    case 'oom':
      return 'was killed because the sandbox ran out of memory'
    case 'disk_quota':
      return 'was ended because the disk space of the sandbox is used up'
    case 'signal':
    case 'output_limit':
    case 'shim_killed':
      return `was ended by ${signal ?? 'the sandbox'}`
  }
}
