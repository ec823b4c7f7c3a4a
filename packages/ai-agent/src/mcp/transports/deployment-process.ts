/**
 * A server of the deployment as a child process: its own process group and environment, killed with
 * its process tree. The SDK's stdio transport passes on part of the agent's environment and kills
 * the process alone.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Writable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { orTimeout } from '@sandlot/shared/async/or-timeout'
import { hasCode } from '@sandlot/shared/base/errors'
import { type BytePipe, StdinBlockedError, MAX_UNREAD_BYTES, type StderrLog } from './stdio.ts'

interface DeploymentProcess {
  command: string
  args: readonly string[]
  /** In addition to `PATH`, `HOME` and `LANG`. */
  env: Readonly<Record<string, string>>
  /** Its home, and its working directory unless `cwd` is set. Created if missing. */
  home: string
  cwd?: string
  guard: ProcessGuard
  stderr: StderrLog
}

/** Milliseconds from the end of its stdin to TERM, and from TERM to KILL. */
const GRACE_MS = 1_000
const SYSTEM_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
/** A shell's exit codes for a command that is missing or not executable. */
const CANNOT_RUN: Record<number, string> = { 126: 'cannot be run', 127: 'was not found' }

/** Rejects when it cannot be started. */
export async function startDeploymentProcess(options: DeploymentProcess): Promise<BytePipe> {
  const { command, args, guard, home, stderr } = options
  mkdirSync(home, { recursive: true, mode: 0o700 })
  const [shell, ...before] = REGISTER_AND_EXEC
  const child = spawn(shell, [...before, command, ...args], {
    cwd: options.cwd ?? home,
    // This Node first: most servers are started by node or npx.
    env: { PATH: `${dirname(process.execPath)}:${SYSTEM_PATH}`, HOME: home, LANG: 'C.UTF-8', ...options.env },
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe', guard.input()],
  })
  const group = await started(child)
  const { stdin, stdout } = child
  if (stdin === null || stdout === null) throw new Error('the process has no pipes')
  // A write to a server that has ended rejects by itself.
  stdin.on('error', () => undefined)
  const stderrClosed = new Promise((resolve) => child.stderr?.once('close', resolve))
  child.stderr?.on('data', (bytes: Uint8Array) => stderr.push(bytes))
  child.stderr?.on('error', () => undefined)

  let closed = false
  const exit = new Promise((resolve) => child.once('exit', resolve))
  const exited = exit.then(async () => {
    // Its children hold its pipes open.
    sendSignal(-group, 'SIGKILL')
    guard.unregister(group)
    // Its last lines may still be in the pipe, which a process outside its group may hold open.
    await orTimeout(stderrClosed, GRACE_MS, undefined)
    stderr.end()
  })
  const end = async (): Promise<void> => {
    closed = running(child)
    const early = descendantsOf(group)
    stdin.end()
    await orTimeout(exited, GRACE_MS, undefined)
    if (running(child)) {
      sendSignal(-group, 'SIGTERM')
      await orTimeout(exited, GRACE_MS, undefined)
    }
    // Also those that left the group.
    const left = [...early, ...descendantsOf(group)]
    killAll(left)
    sendSignal(-group, 'SIGKILL')
    await exited
    await waitForExit(left, GRACE_MS)
    stdout.destroy()
  }
  let ending: Promise<void> | undefined
  return {
    stdout,
    write: (bytes) =>
      new Promise((resolve, reject) => {
        if (stdin.writableLength > MAX_UNREAD_BYTES) return reject(new StdinBlockedError())
        stdin.write(bytes, (error) => (error == null ? resolve() : reject(error)))
      }),
    close: () => (ending ??= end()),
    async ending() {
      // Its pipe may end a moment before it does.
      await orTimeout(exited, GRACE_MS, undefined)
      // One that could not be run may be closed before its exit is reported.
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

/**
 * Prefix of a command: registers its process group with the guard, on file descriptor 3, before the
 * command begins.
 */
const REGISTER_AND_EXEC = ['/bin/sh', '-c', 'echo "+ $$" >&3; exec 3>&-; exec "$@"', 'sh'] as const

export interface ProcessGuard {
  /**
   * For file descriptor 3 of a process that begins with `REGISTER_AND_EXEC`. Starts the guard if
   * there is none.
   */
  input(): Writable
  /** Removes a group of which no process is left. */
  unregister(group: number): void
  /** Kills what is left. Resolves when the guard has exited. */
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
    unregister: (group) => void guard?.stdin?.write(`- ${group}\n`),
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
  // A group of its own: Ctrl-C in the terminal is for the agent.
  const child = spawn('/bin/sh', ['-c', SCRIPT], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
    env: {},
  })
  // Without a guard, servers still end with their stdin.
  child.on('error', () => undefined)
  child.stdin.on('error', () => undefined)
  child.unref()
  return child
}

/** One process; `started` distinguishes it from a later one with the same number. */
interface ProcessIdentity {
  pid: number
  started: string
}

/**
 * The descendants of `root` and the members of its process group, without `root`. Empty outside
 * Linux.
 */
function descendantsOf(root: number): ProcessIdentity[] {
  const all = processNames().flatMap((name) => statOf(Number(name)) ?? [])
  const found = new Map<number, ProcessIdentity>()
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

/** Kills the ones that are still the same processes. */
function killAll(processes: readonly ProcessIdentity[]): void {
  for (const one of processes) if (isRunning(one)) sendSignal(one.pid, 'SIGKILL')
}

/** Resolves when none of them runs, or after `ms`. */
async function waitForExit(processes: readonly ProcessIdentity[], ms: number): Promise<void> {
  const until = performance.now() + ms
  while (processes.some(isRunning) && performance.now() < until) await sleep(5)
}

function isRunning({ pid, started }: ProcessIdentity): boolean {
  const stat = statOf(pid)
  return stat?.started === started && stat.state !== 'Z'
}

/** Sends a signal, to a group when the number is negative. Silent when the process has exited. */
function sendSignal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch (error) {
    if (!hasCode(error, 'ESRCH')) throw error
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

interface Stat extends ProcessIdentity {
  state: string
  parent: number
  group: number
}

function statOf(pid: number): Stat | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The name in brackets may contain spaces and brackets.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const [state = '', parent, group] = fields
    return { pid, state, parent: Number(parent), group: Number(group), started: fields[19] ?? '' }
  } catch {
    // It has ended.
    return undefined
  }
}
