/** A command that starts a tree of processes: what a Stop has to end, and what is left when it did not. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, readdirSync } from 'node:fs'

const PROCESSES = 100
const FIRST_MARK = 98_000
let marks = FIRST_MARK

/**
 * Seconds that the processes of the next tree sleep, which identify them. Each tree has its own: a
 * half-made daemon that one leaves becomes a sleeper only later, and would count as another tree's.
 */
export function newMark(): number {
  marks += 1
  return marks
}

/** Process ids of the tree that live. */
export function survivors(mark: number): number[] {
  return sleepers((seconds) => seconds === mark)
}

function sleepers(wanted: (seconds: number) => boolean): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && wanted(sleepsFor(name)))
    .map(Number)
}

function sleepsFor(pid: string): number {
  try {
    return Number(/^sleep\0(\d+)\0$/.exec(readFileSync(`/proc/${pid}/cmdline`, 'utf8'))?.[1])
  } catch {
    // It has ended since.
    return Number.NaN
  }
}

/** The expected number has arrived. */
export async function untilGrown(mark: number): Promise<void> {
  while (survivors(mark).length < PROCESSES) await new Promise((resolve) => void setTimeout(resolve, 10))
}

/** End what is left of all trees of this run, and what it was about to begin: the next one is to find the machine at rest. */
export async function fell(): Promise<void> {
  const killed = new Set<number>()
  for (let quiet = 0; quiet < 3;) {
    const found = sleepers((seconds) => seconds > FIRST_MARK && seconds <= marks)
    for (const pid of found) {
      killed.add(pid)
      process.kill(pid, 'SIGKILL')
    }
    // Dead ones wait for whoever adopted them.
    const there = readdirSync('/proc').some((name) => killed.has(Number(name)))
    quiet = found.length === 0 && !there ? quiet + 1 : 0
    await new Promise((resolve) => void setTimeout(resolve, 20))
  }
}

/** A command as a tool of the peers runs it: with bash on this machine, ended by Node at the signal. Resolves at its end. */
export async function runCommand(command: string, signal: AbortSignal | undefined): Promise<string> {
  const child = spawn('bash', ['-c', command], {
    stdio: 'ignore',
    signal,
  })
  child.on('error', () => undefined)
  await once(child, 'exit')
  return 'ended'
}
