/**
 * A server of the deployment as a child process: its own process group and environment, killed with its whole process tree.
 * The SDK's stdio transport passes on part of the agent's environment and kills the process alone.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type BytePipe, DoesNotRead, MAX_UNREAD } from './byte-pipe.ts'
import { type ProcessGuard, REGISTERED } from './process-guard.ts'
import { ended, killAll, processesOf, signal } from './process-tree.ts'
import type { StderrLog } from './stderr-log.ts'

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
