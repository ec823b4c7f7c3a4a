import { type ChildProcess, spawn } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { backoffMs } from '@sandlot/shared/async/backoff'
import { messageOf } from '@sandlot/shared/base/errors'
import { createLog, lineSplitter, problemIn } from './log-file.ts'
import { markOf, type ProcessMark } from './process-mark.ts'

export interface ChildSpec {
  name: string
  command: string
  args: string[]
  cwd: string
  environment: Record<string, string>
  log: string
}

interface SupervisorEvents {
  started(mark: ProcessMark): void
  /** A line of stdout that is not a log entry. */
  printed(line: string): void
  /** A message for the terminal. */
  problem(text: string): void
  /** Unexpected exit; it restarts after `delayMs`. */
  died(end: string, delayMs: number): void
}

export interface Supervised {
  /** Stops it and waits; after `graceMs` kills it and its children. Idempotent. */
  stop(signal: NodeJS.Signals, graceMs: number): Promise<void>
  /** Resolves at the first unexpected exit, with its reason. Never rejects. */
  firstDeath: Promise<string>
}

/** Delay before a restart, by the number of consecutive exits: 1, 2, 4 … 30 seconds. */
export function backoff(deaths: number): number {
  return backoffMs(deaths + 1, { firstMs: 1_000, longestMs: 30_000 })
}

/** A child that ran this long resets the back-off. */
const STEADY_MS = 60_000

/** Time limit for closing a log, on a disk that hangs. */
const LOG_PATIENCE_MS = 5_000

/**
 * Starts a process, and restarts it whenever it exits, until `stop`. If this process exits first,
 * the child gets a SIGTERM: an orphan would hold the port and not be restarted.
 */
export function supervise(spec: ChildSpec, events: SupervisorEvents): Supervised {
  let child: ChildProcess | undefined
  const stopping = new AbortController()
  let reportDeath: (end: string) => void = () => {}
  const firstDeath = new Promise<string>((resolve) => {
    reportDeath = resolve
  })

  async function keepRunning(): Promise<void> {
    let deaths = 0
    while (!stopping.signal.aborted) {
      const started = performance.now()
      // Some errors of a spawn are thrown (no memory), others are an event.
      const end = await runOnce(spec, events, stopping.signal, (started) => {
        child = started
      }).catch(messageOf)
      if (stopping.signal.aborted) return
      if (performance.now() - started > STEADY_MS) deaths = 0
      const delay = backoff(deaths)
      deaths += 1
      reportDeath(end)
      events.died(end, delay)
      // `stop` aborts the delay, and the loop ends.
      await sleep(delay, undefined, { signal: stopping.signal }).catch((error: unknown) => {
        if (!stopping.signal.aborted) throw error
      })
    }
  }

  const endWithUs = (): void => void child?.kill('SIGTERM')
  process.on('exit', endWithUs)
  const finished = keepRunning().finally(() => process.off('exit', endWithUs))
  return {
    firstDeath,
    async stop(signal, graceMs) {
      stopping.abort()
      const group = child?.pid
      if (child !== undefined && child.exitCode === null && child.signalCode === null) child.kill(signal)
      const killer = setTimeout(() => {
        if (group !== undefined && child?.exitCode === null && child.signalCode === null)
          process.kill(-group, 'SIGKILL')
      }, graceMs)
      await finished
      clearTimeout(killer)
    },
  }
}

/** Runs the process once. `spawned` receives it. Returns how it ended. */
async function runOnce(
  spec: ChildSpec,
  events: SupervisorEvents,
  stopping: AbortSignal,
  spawned: (child: ChildProcess) => void,
): Promise<string> {
  const log = createLog(spec.log, (text) => events.problem(text))
  // A process group of its own: Ctrl-C reaches only the launcher, which stops processes in order.
  const child = spawn(spec.command, spec.args, {
    cwd: spec.cwd,
    env: spec.environment,
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  spawned(child)
  const mark = child.pid === undefined ? undefined : markOf(child.pid)
  if (mark !== undefined) events.started(mark)
  const show = (line: string): void => {
    const problem = problemIn(line)
    if (problem !== undefined && !stopping.aborted) events.problem(problem)
  }
  const out = lineSplitter((line) => {
    // Lines for the terminal are not logged: they may have the one-time token of the first visit.
    if (!line.startsWith('{')) return events.printed(line)
    log.write(`${line}\n`)
    show(line)
  })
  const err = lineSplitter(show)
  child.stdout?.setEncoding('utf8').on('data', out.push)
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    log.write(text)
    err.push(text)
  })
  const end = await new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(error.message))
    child.once('close', (code, signal) => resolve(code === null ? `signal ${signal}` : `exit code ${code}`))
  })
  out.end()
  err.end()
  await log.end(LOG_PATIENCE_MS)
  return end
}
