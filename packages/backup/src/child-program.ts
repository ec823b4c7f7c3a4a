/** Runs a program with streamed input and output. */
import { spawn } from 'node:child_process'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'

/** Last characters of stderr to keep. */
const STDERR_CHARS = 2_000

interface Ended {
  code: number
  stderr: string
}

type Program = ReturnType<typeof startProgram>

/**
 * Starts it, by default with our environment. `ended` resolves with its stderr and exit code: 127
 * if it could not be started, 128 after a signal.
 */
export function startProgram(path: string, args: readonly string[], environment?: NodeJS.ProcessEnv) {
  const child = spawn(path, args, { env: environment, stdio: ['pipe', 'pipe', 'pipe'] })
  let stderr = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr = (stderr + text).slice(-STDERR_CHARS)
  })
  const ended = new Promise<Ended>((resolve) => {
    child.once('error', (error) => resolve({ code: 127, stderr: error.message }))
    child.once('close', (code) => resolve({ code: code ?? 128, stderr: stderr.trim() }))
  })
  return { child, ended }
}

/** Yields stdout. Returns how the program ended. */
export async function* outputOf({ child, ended }: Program): AsyncGenerator<Buffer, Ended> {
  child.stdin.end()
  try {
    yield* child.stdout as AsyncIterable<Buffer>
  } finally {
    child.stdout.destroy()
  }
  return await ended
}

/** Writes `source` to stdin. `broken`: an error of the source or of the pipe. */
export async function feed(
  { child, ended }: Program,
  source: AsyncIterable<Uint8Array>,
): Promise<Ended & { broken?: { error: unknown } }> {
  child.stdout.resume()
  const broken = await pipeline(Readable.from(source), child.stdin).then(
    () => undefined,
    (error: unknown) => ({ error }),
  )
  child.stdin.destroy()
  return { ...(await ended), broken }
}
