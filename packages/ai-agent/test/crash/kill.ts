/** Starts a life as a process and reports its end. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { nodeEnvironment } from '../../../../test/config.ts'
import type { ChildTask } from './child.ts'

const CHILD = join(import.meta.dirname, 'child.ts')

/** True when it was killed, false when it came to its end first. Throws what it complained of. */
export async function liveAndDie(task: ChildTask): Promise<boolean> {
  const child = spawn(process.execPath, ['--conditions=sandlot-source', CHILD, JSON.stringify(task)], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: nodeEnvironment(),
  })
  const [complaints, [code, signal]] = await Promise.all([text(child.stderr), once(child, 'close')])
  if (signal === 'SIGKILL') return true
  if (code === 0) return false
  throw new Error(`The process ended with ${String(code ?? signal)}: ${complaints}`)
}
