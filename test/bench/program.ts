/** A program of the bench as a process: it prints the port where it listens, and ends when its stdin does. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { nodeEnvironment } from '../config.ts'

export interface Program extends AsyncDisposable {
  readonly pid: number
  /** `http://127.0.0.1:…` */
  readonly origin: string
}

export async function startProgram(file: URL, ...args: string[]): Promise<Program> {
  const child = spawn(process.execPath, ['--conditions=sandlot-source', fileURLToPath(file), ...args], {
    env: nodeEnvironment(),
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const [line] = (await once(child.stdout, 'data')) as [Buffer]
  return {
    pid: child.pid ?? 0,
    origin: `http://127.0.0.1:${String(line).trim()}`,
    [Symbol.asyncDispose]: () => end(child, 'SIGKILL'),
  }
}

/** Resolves when it has ended. */
export async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill(signal)
  await ended
}

/** In the program: listen on loopback, and print the port. */
export async function announce(server: Server): Promise<void> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  process.stdout.write(`${(server.address() as AddressInfo).port}\n`)
  process.stdin.resume().once('end', () => process.exit(0))
}
