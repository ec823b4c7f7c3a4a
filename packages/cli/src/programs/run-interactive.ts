import { spawn } from 'node:child_process'
import { constants } from 'node:os'
import type { Environment } from '@sandlot/shared/config'

/**
 * Runs a program with our stdin, stdout, stderr and signals. Returns its exit code, 128 + n after
 * signal n.
 */
export async function runInteractive(
  command: string,
  args: string[],
  options: { cwd: string; environment: Environment },
): Promise<number> {
  const child = spawn(command, args, { cwd: options.cwd, env: options.environment, stdio: 'inherit' })
  // From a terminal the child gets Ctrl-C itself; this process must only outlive it.
  const forward = (signal: NodeJS.Signals): void => {
    if (signal !== 'SIGINT' || !process.stdin.isTTY) child.kill(signal)
  }
  const names: NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP']
  for (const name of names) process.on(name, forward)
  try {
    return await new Promise<number>((resolve, reject) => {
      child.once('error', reject)
      child.once('close', (code, signal) =>
        resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal])),
      )
    })
  } finally {
    for (const name of names) process.off(name, forward)
  }
}
