/** One connection to one server, from the handshake to its end. */
import { Client } from '@modelcontextprotocol/client'
import { z } from 'zod'
import { orTimeout } from '@sandlot/shared/async/or-timeout'
import type { Elicit } from './elicitation.ts'
import { type ReadResult, readResult } from './read-result.ts'
import type { ToolDefinition } from './tool-definition.ts'
import type { ToolTransport } from './transports/raw-results.ts'

const CLIENT_INFO = { name: 'sandlot', version: '0.1.0' }
/** Limits of `tools/list`: far more than a model can use. */
const MAX_PAGES = 64
const MAX_TOOLS = 1_000
const NEVER_MS = 86_400_000

interface ConnectionOptions {
  transport: ToolTransport
  /** Negotiate the newest revision before the handshake. On a pipe, silence is no answer. */
  negotiate: boolean
  /** Milliseconds for the handshake. */
  startTimeoutMs: number
  onToolsChanged: () => void
  /** Called when the connection ends and `close` was not called. */
  onLost: () => void
  /** Answers a form in the middle of a call. */
  elicit: Elicit
}

interface CallOptions {
  /** Milliseconds without a result or progress. */
  timeoutMs: number
  /** Milliseconds in total. */
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
  /** Pauses the limits of the calls in flight; see `#handleElicitation`. */
  readonly #pauses = new Set<() => () => void>()

  /** Rejects when the handshake fails; nothing is left running then. */
  static async open(options: ConnectionOptions, signal: AbortSignal): Promise<Connection> {
    const connection = new Connection(options)
    try {
      const { startTimeoutMs: timeout } = options
      const connected = connection.#client.connect(options.transport, { timeout, signal })
      // It asks one or two questions, each with its limit, and then waits as long as it takes.
      if ((await orTimeout(connected, 2 * timeout, 'late')) === 'late')
        throw new Error('it did not finish the handshake in time')
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
    // `Client` is not an event target.
    // oxlint-disable-next-line unicorn/prefer-add-event-listener
    this.#client.onclose = () => {
      const lost = this.#open && !this.#closing
      this.#open = false
      if (lost) options.onLost()
    }
    this.#handleElicitation()
  }

  /** True from the handshake until it is closed or lost. */
  get open(): boolean {
    return this.#open
  }

  /** The server speaks MCP 2026-07-28 or later. */
  get modern(): boolean {
    return this.#client.getProtocolEra() === 'modern'
  }

  /**
   * The result of `tools/list`, all pages, not validated. The SDK's `listTools` rejects the whole
   * list for one malformed tool.
   */
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
      // The cursor repeats: there are no more pages.
      if (cursor === undefined || seen.has(cursor) || tools.length >= MAX_TOOLS) break
      seen.add(cursor)
    }
    return tools
  }

  /** Rejects with the SDK's errors, or with the abort reason. */
  async call(
    tool: Pick<ToolDefinition, 'name' | 'inputSchema'>,
    args: Record<string, unknown>,
    { timeoutMs, maxTimeoutMs, signal, onProgress, meta }: CallOptions,
  ): Promise<ReadResult> {
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
          // The output is validated by `outcomeOf`, with limits. The SDK needs the input schema for
          // headers.
          toolDefinition: { name: tool.name, inputSchema: { ...tool.inputSchema, type: 'object' } },
          // The idle clocks are the limits that count: they pause while the user is asked.
          timeout: NEVER_MS,
          signal: AbortSignal.any([signal, clock.signal, longest.signal]),
          onprogress: ({ progress, total, message }) => {
            clock.restart()
            onProgress({
              done: progress,
              total,
              message,
            })
          },
        },
      )
      return readResult(this.#options.transport.rawResults.take(result))
    } catch (error) {
      signal.throwIfAborted()
      throw error
    } finally {
      this.#pauses.delete(pause)
      clock.stop()
      longest.stop()
    }
  }

  /** Ends the session and its process. Never rejects. */
  async close(): Promise<void> {
    if (this.#closing) return
    this.#closing = true
    const { transport } = this.#options
    // A server that has gone does not answer.
    if ('terminateSession' in transport && typeof transport.terminateSession === 'function')
      await orTimeout(Promise.allSettled([transport.terminateSession()]), 1_000, undefined)
    await Promise.allSettled([this.#client.close()])
    await Promise.allSettled([transport.close()])
    this.#open = false
  }

  #handleElicitation(): void {
    const { elicit } = this.#options
    this.#client.setRequestHandler('elicitation/create', async ({ params }) => {
      if (params.mode === 'url') return { action: 'decline' }
      // A user takes longer than a call may.
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

interface IdleClock {
  /** Aborted at the limit, with reason `timeout`. */
  readonly signal: AbortSignal
  /** Restarts the limit: progress was reported. */
  restart(): void
  /** Stops the clock until the returned function is called. */
  pause(): () => void
  /** Stops the clock for good, also when a pause ends later. */
  stop(): void
}

export function createIdleClock(ms: number): IdleClock {
  const controller = new AbortController()
  let timer: NodeJS.Timeout | undefined
  let paused = 0
  let stopped = false
  const restart = (): void => {
    clearTimeout(timer)
    if (paused === 0 && !stopped) timer = setTimeout(() => controller.abort('timeout'), ms)
  }
  restart()
  return {
    signal: controller.signal,
    restart,
    pause() {
      paused++
      clearTimeout(timer)
      return () => {
        paused--
        restart()
      }
    },
    stop() {
      stopped = true
      clearTimeout(timer)
    },
  }
}
