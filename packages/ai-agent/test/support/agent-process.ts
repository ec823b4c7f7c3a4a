/** The agent as a real process for tests, and a client of its socket. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  type AnyMessage,
  type ClientConnection,
  PROTOCOL_VERSION,
  client,
  methods,
} from '@agentclientprotocol/sdk'
import { EXT } from '@sandlot/shared/acp/meta'
import type { SessionEvent } from '@sandlot/shared/chat/events'
import { nodeEnvironment } from '../../../../test/config.ts'
import { WebSocket } from 'ws'
import { webSocketStream } from '../../src/acp/socket.ts'

const MAIN = join(import.meta.dirname, '../../src/main.ts')
/** Nothing listens there. */
export const NO_ENGINE = 'unix:///nonexistent/docker.sock'

/** A data folder and the processes that were started on it. */
export class AgentFolder implements AsyncDisposable {
  readonly path = mkdtempSync(join(tmpdir(), 'sandlot-main-'))
  readonly socket = join(this.path, 'run', 'agent.sock')
  readonly #started: AgentProcess[] = []

  start(env: Record<string, string> = {}, args: readonly string[] = []): AgentProcess {
    const started = new AgentProcess(this.path, env, args)
    this.#started.push(started)
    return started
  }

  /** Started and listening. */
  async listening(env: Record<string, string> = {}): Promise<AgentProcess> {
    const started = this.start(env)
    await started.logged('the agent is ready')
    return started
  }

  async killAll(): Promise<void> {
    for (const one of this.#started) await one.kill()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.killAll()
    rmSync(this.path, { recursive: true, force: true })
  }
}

/** The command that starts the agent on this folder. */
export function agentCommand(
  folder: string,
  env: Record<string, string>,
  args: readonly string[],
): { command: string; args: string[]; env: Record<string, string> } {
  return {
    command: process.execPath,
    args: ['--conditions=sandlot-source', MAIN, ...args],
    env: {
      ...nodeEnvironment(),
      SANDLOT_DATA: folder,
      DOCKER_HOST: NO_ENGINE,
      SANDLOT_SANDBOX_POOL: '0',
      ...env,
    },
  }
}

export class AgentProcess {
  readonly child: ChildProcess
  readonly ended: Promise<number | null>
  stdout = ''
  stderr = ''

  constructor(folder: string, env: Record<string, string>, args: readonly string[]) {
    const start = agentCommand(folder, env, args)
    const child = spawn(start.command, start.args, { env: start.env, stdio: 'pipe' })
    child.stdout.setEncoding('utf8').on('data', (text: string) => (this.stdout += text))
    child.stderr.setEncoding('utf8').on('data', (text: string) => (this.stderr += text))
    // It may end while we write; that it has ended is known from `ended`.
    child.stdin.on('error', () => undefined)
    this.child = child
    this.ended = once(child, 'close').then(([code]) => code as number | null)
  }

  /** Resolves when stderr has this text. Rejects when the process ends first. */
  async logged(text: string): Promise<void> {
    const early = this.ended.then((code) => {
      if (!this.stderr.includes(text)) throw new Error(`the agent ended with ${code}:\n${this.stderr}`)
    })
    const seen = new Promise<void>((resolve) => {
      const look = (): void => {
        if (this.stderr.includes(text)) resolve()
      }
      this.child.stderr?.on('data', look)
      look()
    })
    await Promise.race([early, seen])
  }

  send(line: object): void {
    this.child.stdin?.write(`${JSON.stringify(line)}\n`)
  }

  async kill(): Promise<void> {
    if (this.child.exitCode === null && this.child.signalCode === null) this.child.kill('SIGKILL')
    await this.ended
  }
}

export interface SocketClient extends Disposable {
  connection: ClientConnection
  /** Every event so far. */
  events: SessionEvent[]
  request(method: string, params: object): Promise<Record<string, unknown>>
}

const ADA = { _meta: { sandlot: { user: { id: 'u_ada', role: 'member' } } } }

/** A client of our own, as the service is one; all its requests are Ada's. */
export async function connectTo(folder: { socket: string }): Promise<SocketClient> {
  const socket = new WebSocket(`ws+unix://${folder.socket}:/acp`)
  const [[{ socket: connection }]] = await Promise.all([
    once(socket, 'upgrade') as Promise<[IncomingMessage]>,
    once(socket, 'open'),
  ])
  const events: SessionEvent[] = []
  const stream: { readable: ReadableStream<AnyMessage>; writable: WritableStream<AnyMessage> } =
    webSocketStream(socket, connection)
  const made = client({ name: 'test' })
    .onNotification('*', ({ method, params }) => {
      const { update, updates = [update] } = params as { update: SessionEvent; updates?: SessionEvent[] }
      if (method === methods.client.session.update || method === EXT.sessionUpdates) events.push(...updates)
    })
    .connect(stream)
  const request = (method: string, params: object): Promise<Record<string, unknown>> =>
    made.agent.request(method, { ...ADA, ...params })
  await request(methods.agent.initialize, {
    protocolVersion: PROTOCOL_VERSION,
    clientCapabilities: { _meta: { sandlot: { version: 1 } } },
  })
  return {
    connection: made,
    events,
    request,
    [Symbol.dispose]: () => {
      made.close()
      socket.terminate()
    },
  }
}
