/** One connection to one server, from the handshake to its end. */
import { Client, type Transport } from '@modelcontextprotocol/client'
import { z } from 'zod'
import type { Elicit } from './elicitation.ts'
import { type CallResult, callResult } from './result.ts'
import type { ToolDefinition } from './tool-definition.ts'

const CLIENT_INFO = { name: 'sandlot', version: '0.1.0' }
/** Pages of `tools/list`, and tools of one server. Far more than a model can use. */
const MAX_PAGES = 64
const MAX_TOOLS = 1_000
const NEVER_MS = 86_400_000

export interface ConnectionOptions {
  transport: Transport
  /** Ask whether the server speaks the newest revision before the handshake. A pipe cannot tell silence from a no. */
  negotiate: boolean
  /** Milliseconds for the handshake. */
  startTimeoutMs: number
  onToolsChanged: () => void
  /** It is over, without our having closed it. */
  onLost: () => void
  /** Answers a form in the middle of a call. */
  elicit: Elicit
}

export interface CallOptions {
  /** Milliseconds without an answer or a report. */
  timeoutMs: number
  /** Milliseconds altogether. */
  maxTimeoutMs: number
  signal: AbortSignal
  onProgress: (progress: { message?: string; done: number; total?: number }) => void
  meta: Record<string, unknown>
}

const page = z.looseObject({ tools: z.array(z.unknown()), nextCursor: z.string().optional() })

export class Connection {
  readonly #client: Client
  readonly #options: ConnectionOptions
  #closing = false
  #open = false
  /** Pauses of the calls under way; see `#asked`. */
  readonly #pauses = new Set<() => () => void>()

  /** Rejects when the handshake fails; nothing is left running then. */
  static async open(options: ConnectionOptions, signal: AbortSignal): Promise<Connection> {
    const connection = new Connection(options)
    try {
      await connection.#client.connect(options.transport, { timeout: options.startTimeoutMs, signal })
      connection.#open = true
      return connection
    } catch (error) {
      connection.#closing = true
      await options.transport.close()
      throw error
    }
  }

  private constructor(options: ConnectionOptions) {
    this.#options = options
    this.#client = new Client(CLIENT_INFO, {
      capabilities: { elicitation: { form: {} } },
      versionNegotiation: { mode: options.negotiate ? 'auto' : 'legacy' },
      listChanged: {
        tools: { autoRefresh: false, debounceMs: 0, onChanged: () => options.onToolsChanged() },
      },
    })
    // It is no event target.
    // oxlint-disable-next-line unicorn/prefer-add-event-listener
    this.#client.onclose = () => {
      const lost = this.#open && !this.#closing
      this.#open = false
      if (lost) options.onLost()
    }
    this.#answerQuestions()
  }

  /** True from the handshake until it is closed or lost. */
  get open(): boolean {
    return this.#open
  }

  /** The server speaks MCP 2026-07-28 or later. */
  get modern(): boolean {
    return this.#client.getProtocolEra() === 'modern'
  }

  /** What `tools/list` answers, all pages, unread. */
  async list(timeoutMs: number, signal?: AbortSignal): Promise<unknown[]> {
    if (this.#client.getServerCapabilities()?.tools === undefined) return []
    const tools: unknown[] = []
    const seen = new Set<string>()
    const options = { timeout: timeoutMs, signal }
    for (let cursor: string | undefined; seen.size < MAX_PAGES;) {
      const params = cursor === undefined ? {} : { cursor }
      const got = await this.#client.request({ method: 'tools/list', params }, page, options)
      tools.push(...got.tools.slice(0, MAX_TOOLS - tools.length))
      cursor = got.nextCursor
      // A server that goes round in a circle has told us everything it will.
      if (cursor === undefined || seen.has(cursor) || tools.length >= MAX_TOOLS) break
      seen.add(cursor)
    }
    return tools
  }

  /** Rejects with the SDK's errors, or with the reason of an abort. */
  async call(
    tool: Pick<ToolDefinition, 'name' | 'inputSchema'>,
    args: Record<string, unknown>,
    { timeoutMs, maxTimeoutMs, signal, onProgress, meta }: CallOptions,
  ): Promise<CallResult> {
    const clock = createIdleClock(timeoutMs)
    const longest = createIdleClock(maxTimeoutMs)
    const pause = (): (() => void) => {
      const resume = [clock.pause(), longest.pause()]
      return () => resume.forEach((go) => go())
    }
    this.#pauses.add(pause)
    try {
      const result = await this.#client.callTool(
        { name: tool.name, arguments: args, _meta: meta },
        {
          // Its output is checked by us, within bounds; of its input the SDK needs what goes into headers.
          toolDefinition: { name: tool.name, inputSchema: { ...tool.inputSchema, type: 'object' } },
          // Ours are the limits that count, because they stand still while the user is asked.
          timeout: NEVER_MS,
          signal: AbortSignal.any([signal, clock.signal, longest.signal]),
          onprogress: ({ progress, total, message }) => {
            clock.again()
            onProgress({
              done: progress,
              total,
              message,
            })
          },
        },
      )
      return callResult.parse(result)
    } catch (error) {
      signal.throwIfAborted()
      throw error
    } finally {
      this.#pauses.delete(pause)
      clock.stop()
      longest.stop()
    }
  }

  /** Ends the session and whatever runs for it. Never rejects. */
  async close(): Promise<void> {
    if (this.#closing) return
    this.#closing = true
    const { transport } = this.#options
    // A server that is gone cannot be told.
    if ('terminateSession' in transport && typeof transport.terminateSession === 'function')
      await Promise.race([Promise.allSettled([transport.terminateSession()]), after(1_000)])
    await Promise.allSettled([this.#client.close()])
    await Promise.allSettled([transport.close()])
    this.#open = false
  }

  #answerQuestions(): void {
    const { elicit } = this.#options
    this.#client.setRequestHandler('elicitation/create', async ({ params }) => {
      if (params.mode === 'url') return { action: 'decline' }
      // A person takes longer than a call may.
      const resume = [...this.#pauses].map((pause) => pause())
      try {
        const { message, requestedSchema } = params
        return await elicit({ message, schema: requestedSchema })
      } finally {
        for (const go of resume) go()
      }
    })
  }
}

function after(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms).unref())
}

export interface IdleClock {
  /** Aborted at the limit, with reason `timeout`. */
  readonly signal: AbortSignal
  /** A sign of life. */
  again(): void
  /** Does not count until the returned function is called. */
  pause(): () => void
  /** For good, also where a pause ends later. */
  stop(): void
}

export function createIdleClock(ms: number): IdleClock {
  const controller = new AbortController()
  let timer: NodeJS.Timeout | undefined
  let paused = 0
  let stopped = false
  const again = (): void => {
    clearTimeout(timer)
    if (paused === 0 && !stopped) timer = setTimeout(() => controller.abort('timeout'), ms)
  }
  again()
  return {
    signal: controller.signal,
    again,
    pause() {
      paused++
      clearTimeout(timer)
      return () => {
        paused--
        again()
      }
    },
    stop() {
      stopped = true
      clearTimeout(timer)
    },
  }
}
