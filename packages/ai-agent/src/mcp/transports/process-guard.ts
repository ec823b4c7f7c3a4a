/**
 * Ends the servers' processes when the agent is gone, however it went: a small shell that reads which process groups
 * there are, and at the end of its input (which is when the agent has let go, been killed or crashed) kills those left.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Writable } from 'node:stream'

const SCRIPT = `
trap '' INT TERM HUP
groups=' '
while read -r what group; do
  case $what in
    +) groups="$groups$group " ;;
    -) case $groups in *" $group "*) groups="\${groups%% $group *} \${groups#* $group }" ;; esac ;;
  esac
done
for group in $groups; do kill -s KILL -- "-$group" 2>/dev/null; done
`

/** Put before a command: tells the guard of the group before the command itself begins. File descriptor 3 is the guard’s. */
export const REGISTERED = ['/bin/sh', '-c', 'echo "+ $$" >&3; exec 3>&-; exec "$@"', 'sh'] as const

export interface ProcessGuard {
  /** For file descriptor 3 of a process that begins with `REGISTERED`. Starts the guard when there is none. */
  input(): Writable
  /** Nothing of this group is left. */
  forget(group: number): void
  /** Kill what is left. Resolves when the guard has ended. */
  close(): Promise<void>
}

export function createProcessGuard(): ProcessGuard {
  let guard: ChildProcess | undefined
  const input = (): Writable => {
    const ended = guard !== undefined && (guard.exitCode !== null || guard.signalCode !== null)
    if (guard === undefined || ended) guard = start()
    if (guard.stdin === null) throw new Error('the guard has no input')
    return guard.stdin
  }
  return {
    input,
    forget: (group) => void guard?.stdin?.write(`- ${group}\n`),
    async close() {
      const last = guard
      guard = undefined
      if (last === undefined || last.exitCode !== null || last.signalCode !== null) return
      const ended = once(last, 'exit')
      last.stdin?.end()
      await ended
    },
  }
}

function start(): ChildProcess {
  // A group of its own: Ctrl-C in the agent's terminal is for the agent.
  const child = spawn('/bin/sh', ['-c', SCRIPT], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
    env: {},
  })
  // A guard that cannot be started or written to leaves servers that end with their stdin; that is no reason to crash.
  child.on('error', () => undefined)
  child.stdin.on('error', () => undefined)
  child.unref()
  return child
}
