/** A program of this machine whose input and output are streamed. */
import { spawn } from 'node:child_process'

/** Characters of what it writes on stderr that are kept, the last ones. */
const MOST_COMPLAINTS = 2_000

/**
 * Starts it. `ended` resolves with its exit code and what it wrote on stderr, as a shell would say
 * it: 127 where it could not be started, 128 where a signal ended it. `environment`: absent, ours.
 */
export function startProgram(path: string, args: readonly string[], environment?: NodeJS.ProcessEnv) {
  const child = spawn(path, args, { env: environment, stdio: ['pipe', 'pipe', 'pipe'] })
  let said = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said = (said + text).slice(-MOST_COMPLAINTS)
  })
  const ended = new Promise<{ code: number; said: string }>((resolve) => {
    child.once('error', (error) => resolve({ code: 127, said: error.message }))
    child.once('close', (code) => resolve({ code: code ?? 128, said: said.trim() }))
  })
  return { child, ended }
}
