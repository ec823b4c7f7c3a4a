/**
 * A client that speaks JSON-RPC by hand, over the two real wires: lines on a child's stdin and stdout, and WebSocket on the
 * agent's socket. It sees what really goes over the wire, also what the SDK would drop or mend.
 */
import { once } from 'node:events'
import { WebSocket } from 'ws'
import { expect } from 'vitest'
import type { AgentFolder, AgentProcess } from '../support/agent-process.ts'

export interface RawMessage {
  jsonrpc: string
  id?: number | string | null
  method?: string
  // Loosely typed, so that no type hides a member.
  // oxlint-disable-next-line typescript/no-explicit-any
  params?: any
  // oxlint-disable-next-line typescript/no-explicit-any
  result?: any
  error?: { code: number; message: string; data?: unknown }
}

type Answering = (params: RawMessage['params']) => unknown

export class RawClient {
  /** Everything that came, in order. */
  readonly received: RawMessage[] = []
  /** Requests of the agent, by method. */
  readonly asked: RawMessage[] = []
  readonly #sendText: (text: string) => void
  readonly #answers = new Map<string, Answering>()
  readonly #waiting = new Set<() => void>()
  #lastId = -1

  constructor(sendText: (text: string) => void) {
    this.#sendText = sendText
  }

  /** This client's answer to a request of the agent; all other requests get -32601. */
  on(method: string, answer: Answering): void {
    this.#answers.set(method, answer)
  }

  sendText(text: string): void {
    this.#sendText(text)
  }

  notify(method: string, params: object): void {
    this.sendText(JSON.stringify({ jsonrpc: '2.0', method, params }))
  }

  /** Ids begin at 0, as the agent's do: the two spaces must not be mixed up. Answers the id. */
  begin(method: string, params: object): number {
    const id = ++this.#lastId
    this.sendText(JSON.stringify({ jsonrpc: '2.0', id, method, params }))
    return id
  }

  /** The whole response. */
  async response(id: number | string | null): Promise<RawMessage> {
    return this.until((message) => message.id === id && message.method === undefined)
  }

  async call(method: string, params: object): Promise<RawMessage> {
    return this.response(this.begin(method, params))
  }

  /** The result; fails the test on an error. */
  async request(method: string, params: object): Promise<RawMessage['result']> {
    const { result, error } = await this.call(method, params)
    expect(error).toBeUndefined()
    return result
  }

  /** The first message, past or to come, that `wanted` accepts. */
  async until(wanted: (message: RawMessage) => boolean, ms = 20_000): Promise<RawMessage> {
    const deadline = AbortSignal.timeout(ms)
    for (;;) {
      const found = this.received.find(wanted)
      if (found !== undefined) return found
      if (deadline.aborted)
        throw new Error(`it never came; last: ${JSON.stringify(this.received.slice(-5)).slice(0, 2_000)}`)
      await new Promise<void>((resolve) => {
        const go = (): void => {
          this.#waiting.delete(go)
          deadline.removeEventListener('abort', go)
          resolve()
        }
        this.#waiting.add(go)
        deadline.addEventListener('abort', go)
      })
    }
  }

  receive(text: string): void {
    const message = JSON.parse(text) as RawMessage
    this.received.push(message)
    if (message.method !== undefined && message.id !== undefined) this.#answer(message)
    for (const wake of this.#waiting) wake()
  }

  #answer(request: RawMessage): void {
    this.asked.push(request)
    const { id, method = '' } = request
    const answer = this.#answers.get(method)
    if (answer === undefined)
      return this.sendText(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32_601, message: 'no' } }))
    const result = answer(request.params)
    if (result !== undefined) this.sendText(JSON.stringify({ jsonrpc: '2.0', id, result }))
  }

  // ── Reading ─────────────────────────────────────────────────────────────────────────────────────────────

  /** The updates of one session so far. */
  updates(sessionId: string): RawMessage['params'][] {
    return this.received
      .filter(({ method, params }) => method === 'session/update' && params.sessionId === sessionId)
      .map(({ params }) => params.update)
  }

  kinds(sessionId: string): string[] {
    return this.updates(sessionId).map((update) => update.sessionUpdate as string)
  }

  /** The agent's text as a client shows it that appends chunks. */
  said(sessionId: string): string {
    return this.updates(sessionId)
      .filter((update) => update.sessionUpdate === 'agent_message_chunk')
      .map((update) => update.content.text as string)
      .join('')
  }
}

/** On the child's stdin and stdout. */
export function overStdio({ child }: AgentProcess): RawClient {
  const client = new RawClient((text) => child.stdin?.write(`${text}\n`))
  let rest = ''
  child.stdout?.on('data', (text: string) => {
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) client.receive(line)
  })
  return client
}

/** On the agent's socket; as a client that is not ours. */
export async function overSocket(folder: AgentFolder): Promise<RawClient & Disposable> {
  const socket = new WebSocket(`ws+unix://${folder.socket}:/acp`)
  await once(socket, 'open')
  const client = new RawClient((text) => socket.send(text))
  socket.on('message', (data: Buffer) => client.receive(data.toString('utf8')))
  return Object.assign(client, { [Symbol.dispose]: () => socket.terminate() })
}

export const text = (words: string): object[] => [{ type: 'text', text: words }]

export async function initialized(client: RawClient, clientCapabilities: object = {}): Promise<RawMessage> {
  return client.call('initialize', { protocolVersion: 1, clientCapabilities })
}

export async function newSession(client: RawClient, params: object = {}): Promise<string> {
  const made = await client.request('session/new', { cwd: '/workspace', mcpServers: [], ...params })
  return made.sessionId as string
}
