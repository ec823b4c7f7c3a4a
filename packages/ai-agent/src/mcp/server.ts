/**
 * One configured server, for all users or for one: started when it is needed, kept up, listed again when it says that
 * its tools changed, stopped when nobody uses it.
 */
import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Transport } from '@modelcontextprotocol/client'
import { Connection } from './connection.ts'
import type { Elicit, Elicitation, ElicitationAnswer } from './elicitation.ts'
import {
  type Connecting,
  isForgottenSession,
  NeedsAuth,
  reasonOf,
  refusesRevision,
  ServerUnavailable,
} from './error.ts'
import type { CallResult } from './result.ts'
import { refusalOf, type ServerAccess } from './server-access.ts'
import type { ServerSpec } from './server-spec.ts'
import { readToolDefinitions, type ReadTools, type ToolDefinition } from './tool-definition.ts'
import { backoffMs } from '@sandlot/shared/async/backoff'
import { orAborted } from '@sandlot/shared/async/or-aborted'
import type { CallContext, ToolCall, ToolLog } from '../tools/tool.ts'

/** Milliseconds for a list of tools that is asked for again. */
const RELIST_MS = 5_000

let lastRevision = 0

export class McpServer {
  readonly name: string
  readonly #parts: ServerParts
  readonly #backoff = createBackoff()
  readonly #closed = new AbortController()
  #connection: { is: Connection; opened: Opened; since: number; settings: string } | undefined
  #connecting: Promise<Connection> | undefined
  #known: ReadTools | undefined
  #stale = false
  #why = 'it was not started yet'
  /** It refused the handshake of the revisions before: asked anew, it is spoken to in the newest. */
  #newest = false
  /** Those under way, and who answers a question in them. */
  readonly #calls = new Map<ServerCall, Elicit>()
  #idleTimer: NodeJS.Timeout | undefined
  #retryTimer: NodeJS.Timeout | undefined
  /** What the last prompt was offered. */
  last: Offered | undefined
  /** Changes with the set of its tools. */
  revision = ++lastRevision

  constructor(parts: ServerParts) {
    this.#parts = parts
    this.name = parts.spec.name
  }

  get spec(): ServerSpec {
    return this.#parts.spec
  }

  /** Nothing runs, and nothing is about to. */
  get idle(): boolean {
    return this.#connection === undefined && this.#connecting === undefined && this.#calls.size === 0
  }

  // ── Tools ─────────────────────────────────────────────────────────────────────────────────────────────

  /**
   * The tools now. Waits for a server that was never tried, and for one that just failed for the first time; one that
   * keeps failing costs nobody any time. Never rejects.
   */
  async offered(signal: AbortSignal): Promise<Offered> {
    const offered = await this.#offer(signal)
    this.last = offered
    return offered
  }

  async #offer(signal: AbortSignal): Promise<Offered> {
    try {
      await this.#restartIfSettingsChanged()
      const running = this.#connection?.is.open === true
      // Stopped because nobody used it: its tools are known, and a call starts it.
      const stopped =
        this.#connection === undefined && this.#known !== undefined && this.#backoff.failures === 0
      if (!running && !stopped) {
        if (this.#backoff.failures > 1) {
          // Tried beside the prompt: the next one has it, if it is well again.
          if (this.#backoff.waitMs() === 0) void Promise.allSettled([this.#connect(this.#closed.signal)])
          return { state: 'unavailable', why: this.#why }
        }
        // A timer may come a moment early.
        await sleep(Math.ceil(this.#backoff.waitMs()) + 2, undefined, { signal })
        await this.#connect(signal)
      } else if (running && this.#stale) await this.#relist()
      return { state: 'ready', tools: this.#known?.tools ?? [] }
    } catch (error) {
      if (error instanceof NeedsAuth) return { state: 'needs_auth', connecting: error.connecting }
      return { state: 'unavailable', why: signal.aborted ? 'nobody waited for it' : reasonOf(error) }
    } finally {
      this.#restIfUnused()
    }
  }

  /** Tools that it announced and that cannot be offered. */
  get problems(): readonly string[] {
    return this.#known?.problems ?? []
  }

  async #relist(): Promise<void> {
    const connection = this.#connection?.is
    if (connection === undefined) return
    this.#stale = false
    try {
      this.#learn(await connection.list(RELIST_MS), connection)
    } catch (error) {
      this.#stale = true
      // It is there but did not say: what it had before counts. One that is gone is gone.
      if (!connection.open) throw error
      this.#parts.log.warn(
        { server: this.name, error: reasonOf(error) },
        'an MCP server did not list its tools',
      )
      if (this.spec.kind === 'http') {
        await this.#drop()
        this.#failed(reasonOf(error))
        throw error
      }
    }
  }

  #learn(list: readonly unknown[], { modern }: Connection): void {
    const withHeaders = modern && this.spec.kind === 'http'
    const read = readToolDefinitions(list, this.spec.config.tools, withHeaders)
    const before = JSON.stringify(this.#known?.tools)
    if (before === JSON.stringify(read.tools)) return
    this.#known = read
    this.revision = ++lastRevision
    const { log } = this.#parts
    log.info({ server: this.name, tools: read.tools.length }, 'an MCP server told its tools')
    for (const problem of read.problems.slice(0, 20))
      log.warn({ server: this.name, problem }, 'a tool of an MCP server cannot be offered')
  }

  // ── Calls ─────────────────────────────────────────────────────────────────────────────────────────────

  /** Rejects with what `callFailureOf` understands. `onSent`: from now on it may have had its effect. */
  async call(
    tool: ToolDefinition,
    args: Record<string, unknown>,
    ctx: ServerCall,
    options: {
      timeoutMs: number
      maxTimeoutMs: number
      onProgress: (progress: { message?: string; done: number; total?: number }) => void
      onSent: () => void
      elicit: Elicit
    },
  ): Promise<CallResult> {
    this.#calls.set(ctx, options.elicit)
    clearTimeout(this.#idleTimer)
    const meta = this.spec.kind === 'stdio' ? { 'sandlot/user': ctx.userId } : {}
    try {
      for (let again = false; ; again = true) {
        // One that just went away is on its way back.
        const waitMs = this.#backoff.failures > 2 ? 0 : Math.ceil(this.#backoff.waitMs())
        if (waitMs > 0) await sleep(waitMs + 2, undefined, { signal: ctx.signal })
        const connection = await this.#connect(ctx.signal)
        options.onSent()
        try {
          return await connection.call(tool, args, { ...options, signal: ctx.signal, meta })
        } catch (error) {
          if (ctx.signal.aborted) throw error
          const forgotten = isForgottenSession(error)
          const means = forgotten ? 'again' : await refusalOf(error, this.#parts.access, this.spec.signIn)
          if (again || means !== 'again') {
            // The next prompt looks whether it is still there.
            if (this.spec.kind === 'http') this.#stale = true
            throw means === 'again' ? error : means
          }
          if (forgotten) await this.#drop()
        }
      }
    } finally {
      this.#calls.delete(ctx)
      this.#restIfUnused()
    }
  }

  /** Why the last connection ended, when it did. */
  lostBecause(): string | undefined {
    return this.#connection === undefined ? this.#why : (this.#connection.opened.ending() ?? undefined)
  }

  // ── Coming and going ──────────────────────────────────────────────────────────────────────────────────

  /** Start it without waiting, and keep it up. */
  start(): void {
    void this.offered(this.#closed.signal)
  }

  /** One attempt for all who wait. Rejects with `ServerUnavailable` while it must not be tried. */
  async #connect(signal: AbortSignal): Promise<Connection> {
    if (this.#connection?.is.open === true) return this.#connection.is
    const waitMs = this.#backoff.waitMs()
    if (this.#connecting === undefined && waitMs > 0)
      throw new ServerUnavailable(`${this.#why}; it is tried again in ${Math.ceil(waitMs / 1_000)} s`)
    this.#connecting ??= this.#open().finally(() => {
      this.#connecting = undefined
    })
    // Not ended with whoever waits: others may wait too, and the next prompt has use for it.
    void Promise.allSettled([this.#connecting])
    return orAborted(this.#connecting, signal)
  }

  async #open(): Promise<Connection> {
    const { log } = this.#parts
    let opened: Opened | undefined
    for (let again = false; ; again = true) {
      try {
        const settings = await this.#parts.settings()
        opened = await this.#parts.open(settings, this.#closed.signal)
        const is = await this.#greet(opened, this.#closed.signal)
        this.#connection = { is, opened, since: performance.now(), settings: digest(settings) }
        this.#stale = false
        log.info({ server: this.name }, 'an MCP server is ready')
        return is
      } catch (thrown) {
        const error = await this.#explained(thrown)
        if (error === 'again' && !again) continue
        if (error instanceof NeedsAuth) throw error
        // How it ended says more than that it did, but not more than why it was ended.
        const ending = error instanceof ServerUnavailable ? undefined : opened?.ending()
        this.#failed(ending ?? reasonOf(error === 'again' ? thrown : error))
        throw new ServerUnavailable(this.#why, { cause: thrown })
      }
    }
  }

  /** What a failed start means: as `refusalOf`, and that a pipe may speak another revision. */
  async #explained(error: unknown): Promise<unknown> {
    const means = await refusalOf(error, this.#parts.access, this.spec.signIn)
    // A pipe cannot be asked twice: a server that takes a question it does not know for the end has ended.
    const isPipe = this.spec.kind === 'stdio' && refusesRevision(error)
    const tried = this.#newest
    this.#newest = isPipe && !tried
    if (!isPipe) return means
    if (this.#newest) return 'again'
    return new ServerUnavailable(`it speaks no revision of MCP that is known here (${reasonOf(error)})`)
  }

  /** The handshake and the first list of tools: a server that does not tell them is not there. */
  async #greet(opened: Opened, signal: AbortSignal): Promise<Connection> {
    const { startTimeoutMs } = this.spec.config
    const is: Connection = await Connection.open(
      {
        transport: opened.transport,
        negotiate: this.spec.kind === 'http' || this.#newest,
        startTimeoutMs,
        onToolsChanged: () => {
          this.#stale = true
        },
        onLost: () => this.#lost(opened),
        elicit: (asked) => this.#ask(asked),
      },
      signal,
    )
    try {
      this.#learn(await is.list(startTimeoutMs, signal), is)
      return is
    } catch (error) {
      await is.close()
      throw error
    }
  }

  #failed(why: string): void {
    this.#why = why
    this.#backoff.failed()
    const { failures } = this.#backoff
    this.#parts.log.warn({ server: this.name, why, failures }, 'an MCP server is not available')
    this.#retryLater()
  }

  #lost(opened: Opened): void {
    const current = this.#connection
    if (current === undefined || current.opened !== opened) return
    this.#connection = undefined
    this.#why = opened.ending() ?? 'the connection ended'
    this.#backoff.ended(current.since)
    this.#parts.log.warn({ server: this.name, why: this.#why }, 'an MCP server went away')
    void current.is.close()
    this.#retryLater()
  }

  /** What all users share comes back by itself; what one user has, when that user needs it. */
  #retryLater(): void {
    if (this.spec.perUser || this.#closed.signal.aborted) return
    clearTimeout(this.#retryTimer)
    const retry = (): void => void Promise.allSettled([this.#connect(this.#closed.signal)])
    this.#retryTimer = setTimeout(retry, this.#backoff.waitMs() + 1).unref()
  }

  async #restartIfSettingsChanged(): Promise<void> {
    const current = this.#connection
    if (!this.spec.perUser || current === undefined || this.#calls.size > 0) return
    if (digest(await this.#parts.settings()) !== current.settings) await this.#drop()
  }

  /** Stop what one user has and does not use. */
  #restIfUnused(): void {
    clearTimeout(this.#idleTimer)
    if (!this.spec.perUser || this.#calls.size > 0 || this.#connection === undefined) return
    this.#idleTimer = setTimeout(() => {
      if (this.#calls.size > 0) return
      this.#backoff.reset()
      void this.#drop()
    }, this.spec.config.idleMs).unref()
  }

  async #drop(): Promise<void> {
    const current = this.#connection
    this.#connection = undefined
    this.#why = 'it was stopped'
    await current?.is.close()
  }

  /** Only where it is clear in which call it asks. */
  async #ask(asked: Elicitation): Promise<ElicitationAnswer> {
    const [elicit, ...others] = this.#calls.values()
    return elicit === undefined || others.length > 0 ? { action: 'decline' } : elicit(asked)
  }

  /** Never rejects. */
  async close(): Promise<void> {
    this.#closed.abort('closed')
    clearTimeout(this.#idleTimer)
    clearTimeout(this.#retryTimer)
    await Promise.allSettled([this.#connecting])
    await this.#drop()
  }
}

/** How this server is reached now; made anew for every connection. */
export interface Opened {
  transport: Transport
  /** Why it ended, when it did, in words. */
  ending: () => string | undefined
}

export interface ServerParts {
  spec: ServerSpec
  /** What it is given of secrets; when that changes it is started again. */
  settings: () => Promise<Readonly<Record<string, string>>>
  open: (settings: Readonly<Record<string, string>>, signal: AbortSignal) => Promise<Opened>
  /** Undefined: nothing of its own goes with a request beyond the settings. */
  access: ServerAccess | undefined
  log: ToolLog
}

/** What a server offers when a prompt begins. */
export type Offered =
  | { state: 'ready'; tools: readonly ToolDefinition[] }
  | { state: 'unavailable'; why: string }
  | { state: 'needs_auth'; connecting: Connecting }

export type ServerCall = CallContext & { call: ToolCall }

/** Tells settings apart without keeping them. */
export function digest(settings: Readonly<Record<string, string>>): string {
  const entries = Object.entries(settings).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return createHash('sha256').update(JSON.stringify(entries)).digest('hex')
}

const RETRY = { firstMs: 500, longestMs: 60_000 }
/** One that ran this long was well; its next failure is its first. */
const WELL_MS = 30_000

export interface Backoff {
  /** Failures in a row. */
  readonly failures: number
  /** Milliseconds until it may be tried; 0: now. */
  waitMs(): number
  failed(): void
  /** It ran from `since` (of `performance.now()`) until now. */
  ended(since: number): void
  /** It was well when it was stopped: forget what was. */
  reset(): void
}

export function createBackoff(now: () => number = () => performance.now()): Backoff {
  let failures = 0
  let retryAt = 0
  const failed = (): void => {
    failures++
    retryAt = now() + backoffMs(failures, RETRY, Math.random)
  }
  return {
    get failures() {
      return failures
    },
    waitMs: () => Math.max(0, retryAt - now()),
    failed,
    ended(since) {
      if (now() - since >= WELL_MS) failures = 0
      failed()
    },
    reset() {
      failures = 0
      retryAt = 0
    },
  }
}
