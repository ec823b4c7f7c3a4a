import { spawn } from 'node:child_process'
import type { Environment } from '@sandlot/shared/config'
import { createLog } from '../processes/log-file.ts'
import { StepError } from '../steps.ts'

interface RunOptions {
  cwd: string
  environment: Environment
  /** Log file for the output, best effort. Absent when the output may hold secrets. */
  log?: string
  /** Next step after a failure, shown with the last lines. */
  fix: string
  /** Stops the command and its children. */
  signal?: AbortSignal
  onLine?: (line: string) => void
  /** Further exit codes that are not failures. */
  alsoGood?: readonly number[]
}

const TAIL_LINES = 25
/** Time limit for closing a log, on a disk that hangs. */
const LOG_PATIENCE_MS = 5_000

/**
 * Runs a command without showing its output. Returns its stdout.
 * @throws StepError with its last lines, unless it exits with 0 or one of `alsoGood`.
 */
export async function run(command: string, args: string[], options: RunOptions): Promise<string> {
  options.signal?.throwIfAborted()
  let whereToLook = options.log === undefined ? '' : ` Its full output is in ${options.log}`
  const log =
    options.log === undefined
      ? undefined
      : createLog(options.log, (problem) => {
          whereToLook = ` ${problem}`
        })
  log?.write(`\n$ ${[command, ...args].join(' ')}\n`)
  // A process group of its own, so that a signal also reaches its children.
  const child = spawn(command, args, {
    cwd: options.cwd,
    env: options.environment,
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  const stop = (): void => {
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGTERM')
  }
  options.signal?.addEventListener('abort', stop, { once: true })
  let stdout = ''
  const tail: string[] = []
  const gather = (text: string): void => {
    log?.write(text)
    for (const line of text.split(/\r?\n|\r/)) {
      if (line.trim() === '') continue
      tail.push(line)
      options.onLine?.(line)
    }
    tail.splice(0, Math.max(0, tail.length - TAIL_LINES))
  }
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
    gather(text)
  })
  child.stderr.setEncoding('utf8').on('data', gather)
  const code = await ended(child)
  options.signal?.removeEventListener('abort', stop)
  await log?.end(LOG_PATIENCE_MS)
  options.signal?.throwIfAborted()
  const good: readonly (number | string)[] = [0, ...(options.alsoGood ?? [])]
  if (!good.includes(code)) {
    throw new StepError(
      `${command} failed (${typeof code === 'number' ? `exit code ${code}` : code}).${whereToLook}`,
      options.fix,
      {
        details: tail.join('\n'),
      },
    )
  }
  return stdout
}

/** The exit code, the name of the signal, or the error of the start. */
function ended(child: ReturnType<typeof spawn>): Promise<number | string> {
  return new Promise((resolve) => {
    child.once('error', (error) => resolve(error.message))
    child.once('close', (code, signal) => resolve(code ?? signal ?? 'unknown exit code'))
  })
}

/** True if a command exits with 0. */
export async function succeeds(command: string, args: string[], environment: Environment): Promise<boolean> {
  const child = spawn(command, args, { env: environment, stdio: 'ignore' })
  return (await ended(child)) === 0
}
