/**
 * A server of the deployment as a child process: its own process group and environment, killed with its whole process tree.
 * The SDK's stdio transport passes on part of the agent's environment and kills the process alone.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Writable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { type BytePipe, DoesNotRead, MAX_UNREAD, type StderrLog } from './stdio.ts'

export interface DeploymentProcess {
  command: string
  args: readonly string[]
  /** Added to `PATH`, `HOME` and `LANG`. */
  env: Readonly<Record<string, string>>
  /** Its home, and where it starts unless `cwd` says otherwise. Made when it does not exist. */
  home: string
  cwd?: string
  guard: ProcessGuard
  stderr: StderrLog
}

/** Milliseconds from the end of its stdin to TERM, and from TERM to KILL. */
const GRACE_MS = 1_000
const SYSTEM_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
/** A shell's codes for a command that is not there, or that it may not run. */
const CANNOT_RUN: Record<number, string> = { 126: 'cannot be run', 127: 'was not found' }

/** Rejects when it cannot be started at all. */
export async function startDeploymentProcess(options: DeploymentProcess): Promise<BytePipe> {
  const { command, args, guard, home, stderr } = options
  mkdirSync(home, { recursive: true, mode: 0o700 })
  const [shell, ...before] = REGISTERED
  const child = spawn(shell, [...before, command, ...args], {
    cwd: options.cwd ?? home,
    // Our own Node first: most servers are started by node or npx.
    env: { PATH: `${dirname(process.execPath)}:${SYSTEM_PATH}`, HOME: home, LANG: 'C.UTF-8', ...options.env },
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe', guard.input()],
  })
  const group = await started(child)
  const { stdin, stdout } = child
  if (stdin === null || stdout === null) throw new Error('the process has no pipes')
  // Writing to a server that has ended fails the write itself.
  stdin.on('error', () => undefined)
  child.stderr?.on('data', (bytes: Uint8Array) => stderr.push(bytes))
  child.stderr?.on('error', () => undefined)

  let closed = false
  const gone = new Promise<void>((resolve) => {
    child.once('exit', () => {
      // Whoever it started holds its pipes, and would keep us waiting for their end.
      signal(-group, 'SIGKILL')
      guard.forget(group)
      stderr.end()
      resolve()
    })
  })
  const end = async (): Promise<void> => {
    closed = running(child)
    const early = processesOf(group)
    stdin.end()
    await Promise.race([gone, sleep(GRACE_MS)])
    if (running(child)) {
      signal(-group, 'SIGTERM')
      await Promise.race([gone, sleep(GRACE_MS)])
    }
    // Also those that left the group.
    const left = [...early, ...processesOf(group)]
    killAll(left)
    signal(-group, 'SIGKILL')
    await gone
    await ended(left, GRACE_MS)
    stdout.destroy()
  }
  let ending: Promise<void> | undefined
  return {
    stdout,
    write: (bytes) =>
      new Promise((resolve, reject) => {
        if (stdin.writableLength > MAX_UNREAD) return reject(new DoesNotRead())
        stdin.write(bytes, (error) => (error == null ? resolve() : reject(error)))
      }),
    close: () => (ending ??= end()),
    async ending() {
      // Its pipe may end a moment before it does.
      await Promise.race([gone, sleep(GRACE_MS)])
      // One that could not be run at all may be closed by us before we hear of its end.
      const ran = CANNOT_RUN[child.exitCode ?? 0] === undefined
      return closed && ran ? 'it was stopped' : endingOf(child, command, stderr.lastLine())
    },
  }
}

function started(child: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('spawn', () => resolve(child.pid ?? 0))
  })
}

function running(child: ChildProcess): boolean {
  return child.exitCode === null && child.signalCode === null
}

function endingOf(child: ChildProcess, command: string, said: string): string {
  const { exitCode, signalCode } = child
  const why = exitCode === null ? undefined : CANNOT_RUN[exitCode]
  if (why !== undefined) return `its command ${command} ${why}`
  const how =
    signalCode !== null
      ? `it was ended by ${signalCode}`
      : `it ended${exitCode === null ? '' : ` with code ${exitCode}`}`
  return said === '' ? how : `${how}, after it said: ${said.slice(0, 200)}`
}

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

/** One process; `started` tells it from a later one with the same number. */
export interface SeenProcess {
  pid: number
  started: string
}

/** Everything below `root` now, and whatever else is of its process group; without `root` itself. */
export function processesOf(root: number): SeenProcess[] {
  const all = processNames().flatMap((name) => statOf(Number(name)) ?? [])
  const found = new Map<number, SeenProcess>()
  const below = [root]
  for (const { pid, started, group } of all)
    if (group === root && pid !== root) found.set(pid, { pid, started })
  for (let parent = below.pop(); parent !== undefined; parent = below.pop()) {
    for (const child of all) {
      if (child.parent !== parent) continue
      found.set(child.pid, { pid: child.pid, started: child.started })
      below.push(child.pid)
    }
  }
  return [...found.values()]
}

/** Kill those that are still the same processes. */
export function killAll(processes: readonly SeenProcess[]): void {
  for (const one of processes) if (isRunning(one)) signal(one.pid, 'SIGKILL')
}

/** Resolves when none of them runs any more, or after `ms`: a kill is only the beginning of an end. */
export async function ended(processes: readonly SeenProcess[], ms: number): Promise<void> {
  const until = performance.now() + ms
  while (processes.some(isRunning) && performance.now() < until) await sleep(5)
}

function isRunning({ pid, started }: SeenProcess): boolean {
  const stat = statOf(pid)
  return stat?.started === started && stat.state !== 'Z'
}

/** Sends it, to a group when the number is negative. Silent when there is nobody any more. */
export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch (error) {
    const gone = error instanceof Error && 'code' in error && error.code === 'ESRCH'
    if (!gone) throw error
  }
}

function processNames(): string[] {
  try {
    return readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  } catch {
    // Not Linux.
    return []
  }
}

interface Stat extends SeenProcess {
  state: string
  parent: number
  group: number
}

function statOf(pid: number): Stat | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The name in brackets may hold spaces and brackets itself.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const [state = '', parent, group] = fields
    return { pid, state, parent: Number(parent), group: Number(group), started: fields[19] ?? '' }
  } catch {
    // It has ended since.
    return undefined
  }
}
