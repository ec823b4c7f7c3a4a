/** A command that starts a tree of processes: what a Stop has to end, and what is left when it did not. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, readdirSync } from 'node:fs'

/** Nobody else sleeps so long. */
const MARK = '98764'
/** Plain children, sessions of their own, and daemons whose parents have ended. */
export const TREE = `for i in $(seq 33); do
  sleep ${MARK} &
  setsid sleep ${MARK} &
  (setsid bash -c 'sleep ${MARK} & sleep ${MARK} & exit' &)
done
echo ready; wait`
export const PROCESSES = 100

/** Process ids of the tree that live. */
export function survivors(): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && isOfTree(name))
    .map(Number)
}

function isOfTree(pid: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8') === `sleep\0${MARK}\0`
  } catch {
    // It has ended meanwhile.
    return false
  }
}

/** As many as there should be are there. */
export async function untilGrown(): Promise<void> {
  while (survivors().length < PROCESSES) await new Promise((resolve) => void setTimeout(resolve, 10))
}

/** End what is left of it. */
export function fell(): void {
  for (const pid of survivors()) process.kill(pid, 'SIGKILL')
}

/** The command as a tool of the peers runs it: with bash on this machine, ended by Node at the signal. Resolves at its end. */
export async function runTree(signal: AbortSignal | undefined): Promise<string> {
  const child = spawn('bash', ['-c', TREE], { stdio: 'ignore', ...(signal === undefined ? {} : { signal }) })
  child.on('error', () => undefined)
  await once(child, 'exit')
  return 'ended'
}
