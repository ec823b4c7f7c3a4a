import { type ChildProcess, spawn } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { backoffMs } from '@sandlot/shared/async/backoff'
import { messageOf } from '@sandlot/shared/base/errors'
import { keepLog, lineSplitter, problemIn } from './log-file.ts'
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
  /** A process was started, the first or a later one. */
  started(mark: ProcessMark): void
  /** A line on its stdout that is no log entry. */
  said(line: string): void
  /** Something that a person should see. */
  problem(text: string): void
  /** It ended unexpectedly, and starts again after `delayMs`. */
  died(end: string, delayMs: number): void
}

export interface Supervised {
  /** Ask it to end and wait; after `graceMs` it and what it started are killed. Idempotent. */
  stop(signal: NodeJS.Signals, graceMs: number): Promise<void>
  /**
   * Settles when it ends for the first time without being asked, with how it ended. Never rejects.
   */
  firstDeath: Promise<string>
}

/** Milliseconds before the start after the n-th death in a row: 1, 2, 4 … 30 seconds. */
export function backoff(deaths: number): number {
  return backoffMs(deaths + 1, { firstMs: 1_000, longestMs: 30_000 })
}

/** A child that ran this long had started well: its next death counts as the first again. */
const STEADY_MS = 60_000

/** A log that is not written by then is given up, since a disk may hang. */
const LOG_PATIENCE_MS = 5_000

/**
 * Start a process and start it again whenever it dies, until `stop`. Should this process end first,
 * by an error of its own, the child gets a SIGTERM: an orphan would hold the port, and nothing
 * would start it again.
 */
export function supervise(spec: ChildSpec, events: SupervisorEvents): Supervised {
  let child: ChildProcess | undefined
  const stopping = new AbortController()
  let reportDeath: (end: string) => void = () => {}
  const firstDeath = new Promise<string>((resolve) => {
    reportDeath = resolve
  })

  async function runOnce(): Promise<string> {
    const log = keepLog(spec.log, (text) => events.problem(text))
    // A group of its own, so that Ctrl-C in the terminal reaches only the launcher, which ends
    // things in order.
    const running = spawn(spec.command, spec.args, {
      cwd: spec.cwd,
      env: spec.environment,
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    })
    child = running
    const mark = running.pid === undefined ? undefined : markOf(running.pid)
    if (mark !== undefined) events.started(mark)
    const show = (line: string): void => {
      const problem = problemIn(line)
      if (problem !== undefined && !stopping.signal.aborted) events.problem(problem)
    }
    const out = lineSplitter((line) => {
      // Lines for the terminal are not logged: they may hold the one-time token of the first visit.
      if (!line.startsWith('{')) return events.said(line)
      log.write(`${line}\n`)
      show(line)
    })
    const err = lineSplitter(show)
    running.stdout?.setEncoding('utf8').on('data', out.push)
    running.stderr?.setEncoding('utf8').on('data', (text: string) => {
      log.write(text)
      err.push(text)
    })
    const end = await new Promise<string>((resolve) => {
      running.once('error', (error) => resolve(error.message))
      running.once('close', (code, signal) =>
        resolve(code === null ? `signal ${signal}` : `exit code ${code}`),
      )
    })
    out.end()
    err.end()
    // The file is opened when it can be, not at once: until it is closed, something of it is still
    // to come.
    await log.end(LOG_PATIENCE_MS)
    return end
  }

  async function keepRunning(): Promise<void> {
    let deaths = 0
    while (!stopping.signal.aborted) {
      const started = performance.now()
      // Some errors of a spawn are thrown (no memory), others are an event.
      const end = await runOnce().catch(messageOf)
      if (stopping.signal.aborted) return
      if (performance.now() - started > STEADY_MS) deaths = 0
      const delay = backoff(deaths)
      deaths += 1
      reportDeath(end)
      events.died(end, delay)
      // Rejects only when stop() wakes it, and then the loop is over anyway.
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
