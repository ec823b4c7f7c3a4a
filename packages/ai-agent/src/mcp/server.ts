/**
 * One configured server, for all users or for one: started on demand, restarted after a failure,
 * listed again when its tools change, stopped when it is idle.
 */
import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { Connection } from './connection.ts'
import type { Elicit, Elicitation, ElicitationAnswer } from './elicitation.ts'
import {
  isForgottenSession,
  SignInRequiredError,
  reasonOf,
  refusesRevision,
  ServerUnavailableError,
} from './error.ts'
import type { ReadResult } from './read-result.ts'
import { refusalOf } from './server-access.ts'
import type { Offered, Opened, ServerParts } from './server-parts.ts'
import type { ServerSpec } from './server-spec.ts'
import type { SchemaCheck } from './schema-check.ts'
import { checkedSchema, type Schema } from './schema-dialects.ts'
import { readToolDefinitions, type ReadTools, type ToolDefinition } from './tool-definition.ts'
import { backoffMs } from '@sandlot/shared/async/backoff'
import { orAborted } from '@sandlot/shared/async/or-aborted'
import type { CallContext } from '../tools/tool.ts'

/** Milliseconds for listing the tools again. */
const RELIST_MS = 5_000

/** A server that is replaced or removed ends after so many milliseconds without a call. */
const RETIRED_MS = 10_000

let lastRevision = 0

export class McpServer {
  readonly name: string
  readonly #parts: ServerParts
  readonly #backoff = createBackoff()
  readonly #closed = new AbortController()
  #connection: { is: Connection; opened: Opened; since: number; settings: string } | undefined
  #connecting: Promise<Connection> | undefined
  #listed: ReadTools | undefined
  #stale = false
  #reason = 'it was not started yet'
  /** It refused the legacy handshake: the next attempt negotiates the newest revision. */
  #useNewestRevision = false
  /** Calls in flight, each with the function that asks its user. */
  readonly #calls = new Map<CallContext, Elicit>()
  #idleTimer: NodeJS.Timeout | undefined
  #retryTimer: NodeJS.Timeout | undefined
  #retired = false
  /** The last offer to a prompt. */
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

  /** Nothing is running or starting. */
  get idle(): boolean {
    return this.#connection === undefined && this.#connecting === undefined && this.#calls.size === 0
  }

  // ── Tools ──────────────────────────────────────────────────────────────────────────────────────

  /**
   * The tools now. Waits for the first attempt, and for the retry after a first failure; a server
   * that keeps failing does not delay the prompt. Never rejects.
   */
  async offered(signal: AbortSignal): Promise<Offered> {
    const offered = await this.#offer(signal)
    this.last = offered
    return offered
  }

  /** `offered`, by asking it now, also where it has failed or was stopped. Never rejects. */
  check(signal: AbortSignal): Promise<Offered> {
    this.#backoff.reset()
    this.#stale = true
    if (this.#connection === undefined) this.#listed = undefined
    return this.offered(signal)
  }

  /** Its state, without asking it. */
  get standing(): Offered | 'idle' | 'connecting' {
    if (this.#connecting !== undefined) return 'connecting'
    if (this.#connection?.is.open === true && this.#listed !== undefined)
      return { state: 'ready', tools: this.#listed.tools }
    return this.last ?? 'idle'
  }

  async #offer(signal: AbortSignal): Promise<Offered> {
    try {
      await this.#restartIfSettingsChanged()
      const running = this.#connection?.is.open === true
      // Stopped when idle: its tools are known, and a call starts it.
      const stopped =
        this.#connection === undefined && this.#listed !== undefined && this.#backoff.failures === 0
      if (!running && !stopped) {
        if (this.#backoff.failures > 1) {
          // Retry in the background: the next prompt gets its tools if it succeeds.
          if (this.#backoff.waitMs() === 0) void Promise.allSettled([this.#connect(this.#closed.signal)])
          return { state: 'unavailable', why: this.#reason }
        }
        // A timer may fire a moment early.
        await sleep(Math.ceil(this.#backoff.waitMs()) + 2, undefined, { signal })
        await this.#connect(signal)
      } else if (running && this.#stale) await this.#relist()
      return { state: 'ready', tools: this.#listed?.tools ?? [] }
    } catch (error) {
      if (error instanceof SignInRequiredError) return { state: 'needs_auth', signIn: error.signIn }
      return { state: 'unavailable', why: signal.aborted ? 'the prompt was cancelled' : reasonOf(error) }
    } finally {
      this.#stopWhenIdle()
    }
  }

  /** Tools that it announced and that cannot be offered. */
  get problems(): readonly string[] {
    return this.#listed?.problems ?? []
  }

  async #relist(): Promise<void> {
    const connection = this.#connection?.is
    if (connection === undefined) return
    this.#stale = false
    try {
      this.#updateTools(await connection.list(RELIST_MS), connection)
    } catch (error) {
      this.#stale = true
      if (isForgottenSession(error)) {
        this.#abandon(connection)
        await this.#connect(this.#closed.signal)
        return
      }
      // It is connected but did not list: keep the known tools. A lost connection is an error.
      if (!connection.open) throw error
      this.#parts.log.warn(
        { server: this.name, error: reasonOf(error) },
        'an MCP server did not list its tools',
      )
      if (this.spec.kind === 'http') {
        await this.#disconnect()
        this.#failed(reasonOf(error))
        throw error
      }
    }
  }

  #updateTools(list: readonly unknown[], { modern }: Connection): void {
    const withHeaders = modern && this.spec.kind === 'http'
    const read = readToolDefinitions(list, this.spec.config.tools, withHeaders)
    const before = JSON.stringify(this.#listed?.tools)
    if (before === JSON.stringify(read.tools)) return
    this.#listed = read
    this.revision = ++lastRevision
    const { log } = this.#parts
    log.info({ server: this.name, tools: read.tools.length }, 'an MCP server listed its tools')
    for (const problem of read.problems.slice(0, 20))
      log.warn({ server: this.name, problem }, 'a tool of an MCP server cannot be offered')
  }

  /** See `SlowServers.check`. `schema`: in the server's form. */
  checkSchema(schema: Schema, value: unknown, userId: string): Promise<SchemaCheck> {
    return this.#parts.slowServers.check({ spec: this.spec, userId }, checkedSchema(schema), value)
  }

  /** Its offer to a person for whom it is set aside; see `SlowServers`. */
  setAsideFor(userId: string): Offered | undefined {
    const why = this.#parts.slowServers.whySetAside({ spec: this.spec, userId })
    return why === undefined ? undefined : { state: 'unavailable', why }
  }

  // ── Calls ──────────────────────────────────────────────────────────────────────────────────────

  /**
   * Rejects with errors that `callFailureOf` understands. `onSent`: from now on the call may have
   * its effect.
   */
  async call(
    tool: ToolDefinition,
    args: Record<string, unknown>,
    ctx: CallContext,
    options: {
      timeoutMs: number
      maxTimeoutMs: number
      onProgress: (progress: { message?: string; done: number; total?: number }) => void
      onSent: () => void
      elicit: Elicit
    },
  ): Promise<ReadResult> {
    this.#calls.set(ctx, options.elicit)
    clearTimeout(this.#idleTimer)
    const meta = this.spec.kind === 'stdio' ? { 'sandlot/user': ctx.ids.userId } : {}
    try {
      for (let again = false; ; again = true) {
        // It was just lost and is being restarted.
        const waitMs = this.#backoff.failures > 2 ? 0 : Math.ceil(this.#backoff.waitMs())
        if (waitMs > 0) await sleep(waitMs + 2, undefined, { signal: ctx.signal })
        const connection = await this.#connect(ctx.signal)
        options.onSent()
        try {
          return await connection.call(tool, args, { ...options, signal: ctx.signal, meta })
        } catch (error) {
          if (ctx.signal.aborted) throw error
          const forgotten = isForgottenSession(error)
          const means = forgotten ? 'again' : await refusalOf(error, this.#parts.access, this.spec.signInHint)
          if (again || means !== 'again') {
            // The next prompt lists its tools again.
            if (this.spec.kind === 'http') this.#stale = true
            throw means === 'again' ? error : means
          }
          if (forgotten) this.#abandon(connection)
        }
      }
    } finally {
      this.#calls.delete(ctx)
      this.#stopWhenIdle()
    }
  }

  /** Why the last connection ended, if it did. */
  lossReason(): string | undefined {
    return this.#connection === undefined ? this.#reason : (this.#connection.opened.ending() ?? undefined)
  }

  // ── Starting and stopping ──────────────────────────────────────────────────────────────────────

  /** Starts it without waiting, and keeps it running. */
  start(): void {
    void this.offered(this.#closed.signal)
  }

  /**
   * One attempt for all callers. Rejects with `ServerUnavailableError` while the back-off lasts.
   */
  async #connect(signal: AbortSignal): Promise<Connection> {
    if (this.#connection?.is.open === true) return this.#connection.is
    if (this.#closed.signal.aborted) throw new ServerUnavailableError('it was changed or removed')
    const waitMs = this.#backoff.waitMs()
    if (this.#connecting === undefined && waitMs > 0)
      throw new ServerUnavailableError(`${this.#reason}; it is tried again in ${Math.ceil(waitMs / 1_000)} s`)
    this.#connecting ??= this.#open().finally(() => {
      this.#connecting = undefined
    })
    // An abort ends only this wait: others may wait too, and the next prompt uses the connection.
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
        const is = await this.#handshake(opened, this.#closed.signal)
        this.#connection = { is, opened, since: performance.now(), settings: digest(settings) }
        this.#stale = false
        log.info({ server: this.name }, 'an MCP server is ready')
        return is
      } catch (thrown) {
        const error = await this.#classifyFailure(thrown)
        if (error === 'again' && !again) continue
        if (error instanceof SignInRequiredError) throw error
        // Its end is the better reason, except when the error is a reason already.
        const ending = error instanceof ServerUnavailableError ? undefined : opened?.ending()
        this.#failed(ending ?? reasonOf(error === 'again' ? thrown : error))
        throw new ServerUnavailableError(this.#reason, { cause: thrown })
      }
    }
  }

  /** Classifies a failed start: as `refusalOf`, and retries a pipe with the newest revision. */
  async #classifyFailure(error: unknown): Promise<unknown> {
    const means = await refusalOf(error, this.#parts.access, this.spec.signInHint)
    // A pipe has no probe: a server may exit on a request that it does not know.
    const isPipe = this.spec.kind === 'stdio' && refusesRevision(error)
    const tried = this.#useNewestRevision
    this.#useNewestRevision = isPipe && !tried
    if (!isPipe) return means
    if (this.#useNewestRevision) return 'again'
    return new ServerUnavailableError(`it speaks no revision of MCP that is known here (${reasonOf(error)})`)
  }

  /** The handshake and the first list of tools; both have to succeed. */
  async #handshake(opened: Opened, signal: AbortSignal): Promise<Connection> {
    const { startTimeoutMs } = this.spec.config
    const is: Connection = await Connection.open(
      {
        transport: opened.transport,
        negotiate: this.spec.kind === 'http' || this.#useNewestRevision,
        startTimeoutMs,
        onToolsChanged: () => {
          this.#stale = true
        },
        onLost: () => this.#connectionLost(opened),
        elicit: (asked) => this.#elicit(asked),
      },
      signal,
    )
    try {
      this.#updateTools(await is.list(startTimeoutMs, signal), is)
      return is
    } catch (error) {
      await is.close()
      throw error
    }
  }

  #failed(why: string): void {
    this.#reason = why
    this.#backoff.failed()
    const { failures } = this.#backoff
    this.#parts.log.warn({ server: this.name, why, failures }, 'an MCP server is not available')
    this.#retryLater()
  }

  #connectionLost(opened: Opened): void {
    const current = this.#connection
    if (current === undefined || current.opened !== opened) return
    this.#connection = undefined
    this.#reason = opened.ending() ?? 'the connection ended'
    this.#backoff.ended(current.since)
    this.#parts.log.warn({ server: this.name, why: this.#reason }, 'the connection to an MCP server was lost')
    void current.is.close()
    this.#retryLater()
  }

  /** A shared server is restarted by itself, a user's own one on demand. */
  #retryLater(): void {
    if (this.spec.perUser || this.#closed.signal.aborted) return
    clearTimeout(this.#retryTimer)
    const retry = (): void => void Promise.allSettled([this.#connect(this.#closed.signal)])
    this.#retryTimer = setTimeout(retry, this.#backoff.waitMs() + 1).unref()
  }

  async #restartIfSettingsChanged(): Promise<void> {
    const current = this.#connection
    if (!this.spec.perUser || current === undefined || this.#calls.size > 0) return
    if (digest(await this.#parts.settings()) !== current.settings) await this.#disconnect()
  }

  /** Ends it when no call has run for a while: the calls of a running prompt may still use it. */
  retire(): void {
    this.#retired = true
    this.#stopWhenIdle()
  }

  /** Stops a user's own server when it is idle. */
  #stopWhenIdle(): void {
    clearTimeout(this.#idleTimer)
    if (this.#retired) {
      if (this.#calls.size === 0)
        this.#idleTimer = setTimeout(() => {
          if (this.#calls.size === 0) void this.close()
        }, RETIRED_MS).unref()
      return
    }
    if (!this.spec.perUser || this.#calls.size > 0 || this.#connection === undefined) return
    this.#idleTimer = setTimeout(() => {
      if (this.#calls.size > 0) return
      this.#backoff.reset()
      void this.#disconnect()
    }, this.spec.config.idleMs).unref()
  }

  /** Its session is over: each of its other calls learns that from the server itself. */
  #abandon(connection: Connection): void {
    if (this.#connection?.is !== connection) return
    this.#connection = undefined
    setTimeout(() => void connection.close(), RETIRED_MS).unref()
  }

  async #disconnect(): Promise<void> {
    const current = this.#connection
    this.#connection = undefined
    this.#reason = 'it was stopped'
    await current?.is.close()
  }

  /** Only when exactly one call is in flight: otherwise it is unknown which one asks. */
  async #elicit(asked: Elicitation): Promise<ElicitationAnswer> {
    const [elicit, ...others] = this.#calls.values()
    return elicit === undefined || others.length > 0 ? { action: 'decline' } : elicit(asked)
  }

  /** Never rejects. */
  async close(): Promise<void> {
    this.#closed.abort('closed')
    clearTimeout(this.#idleTimer)
    clearTimeout(this.#retryTimer)
    await Promise.allSettled([this.#connecting])
    await this.#disconnect()
  }
}

/** A hash, to compare settings without keeping them. */
function digest(settings: Readonly<Record<string, string>>): string {
  const entries = Object.entries(settings).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return createHash('sha256').update(JSON.stringify(entries)).digest('hex')
}

const RETRY = { firstMs: 500, longestMs: 60_000 }
/** After running this long, the next failure counts as the first. */
const HEALTHY_MS = 30_000

interface Backoff {
  /** Failures in a row. */
  readonly failures: number
  /** Milliseconds until the next attempt; 0: now. */
  waitMs(): number
  failed(): void
  /** It ran from `since` (of `performance.now()`) until now. */
  ended(since: number): void
  /** It was stopped while healthy: forget the failures. */
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
      if (now() - since >= HEALTHY_MS) failures = 0
      failed()
    },
    reset() {
      failures = 0
      retryAt = 0
    },
  }
}
