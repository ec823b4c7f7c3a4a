import { spawn } from 'node:child_process'
import type { Environment } from '@sandlot/shared/config'
import { keepLog } from '../processes/log-file.ts'
import { StepError } from '../steps.ts'

interface RunOptions {
  cwd: string
  environment: Environment
  /**
   * Everything that the command prints is appended here; a log that cannot be written fails
   * nothing. Absent where the output may hold secrets.
   */
  log?: string
  /** What to do when it fails; shown with its last lines. */
  fix: string
  /** Ends the command and everything that it started. */
  signal?: AbortSignal
  /** Called for every line that it prints. */
  onLine?: (line: string) => void
  /** Exit codes beside 0 that are answers and no failures. */
  alsoGood?: readonly number[]
}

const TAIL_LINES = 25
/** Milliseconds that the end of a log may take, on a disk that hangs. */
const LOG_PATIENCE_MS = 5_000

/**
 * Run a command to its end without showing its output. Answers its stdout.
 * @throws StepError with its last lines, where it does not end with 0 or one of `alsoGood`.
 */
export async function run(command: string, args: string[], options: RunOptions): Promise<string> {
  options.signal?.throwIfAborted()
  let whereToLook = options.log === undefined ? '' : ` All of its output is in ${options.log}`
  const log =
    options.log === undefined
      ? undefined
      : keepLog(options.log, (problem) => {
          whereToLook = ` ${problem}`
        })
  log?.write(`\n$ ${[command, ...args].join(' ')}\n`)
  // A group of its own: when it has to be ended, what it started ends with it.
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
    throw new StepError(`${command} ended with ${code}.${whereToLook}`, options.fix, {
      details: tail.join('\n'),
    })
  }
  return stdout
}

/**
 * The exit code, or the name of the signal; `not found` and the like when it could not be started.
 */
function ended(child: ReturnType<typeof spawn>): Promise<number | string> {
  return new Promise((resolve) => {
    child.once('error', (error) => resolve(error.message))
    child.once('close', (code, signal) => resolve(code ?? signal ?? 'an unknown end'))
  })
}

/** Whether a command answers with 0; its output is not wanted. */
export async function succeeds(command: string, args: string[], environment: Environment): Promise<boolean> {
  const child = spawn(command, args, { env: environment, stdio: 'ignore' })
  return (await ended(child)) === 0
}
