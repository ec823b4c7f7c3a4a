/** The gate as a process of its own, before the real engine. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'

import { answers } from '../src/gate.ts'

export interface GateProcess {
  child: ChildProcess
  /** Its output so far. */
  log(): string
}

const main = new URL('../src/main.ts', import.meta.url).pathname

/**
 * Started with these settings and nothing else of this environment; resolves when `socket` answers.
 */
export async function startGateProcess(
  socket: string,
  settings: Record<string, string>,
): Promise<GateProcess> {
  let log = ''
  const child = spawn(process.execPath, ['--conditions=sandlot-source', main], {
    env: { PATH: '/usr/bin:/bin', ...settings },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (text: Buffer) => (log += text.toString()))
  const end = performance.now() + 60_000
  while (!(await answers(socket))) {
    if (child.exitCode !== null || performance.now() > end) throw new Error(`the gate did not open:\n${log}`)
    await sleep(20)
  }
  return { child, log: () => log }
}

export async function killGate({ child }: GateProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill(signal)
  await ended
}
