/**
 * An agent's core with real parts for tests: the SQLite store in a folder of its own, the scripted HTTP provider behind the
 * real model client, the scheduler with all policies, the session manager. Only tools are the test's own, and there is
 * no sandbox.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Mode } from '@sandlot/shared/chat/mode'
import type { SandlotEvent } from '@sandlot/shared/chat/sandlot-event'
import { type SessionEvent, isOutcome, metaOf, sandlotEventOf } from '@sandlot/shared/chat/events'
import { SandboxError } from '@sandlot/sandbox/errors'
import { NO_QUEUE } from '../../src/limits/prompt-queue.ts'
import { soleOwner } from '../../src/replicas/ownership.ts'
import type { SessionStore } from '@sandlot/storage/sessions/store'
import { openSessionStore } from '@sandlot/storage/store/open'
import { z } from 'zod'
import { createHttpModel } from '../../src/model/http-model.ts'
import { createPolicies } from '../../src/calls/policies/index.ts'
import { createToolMetrics } from '../../src/metrics/tool-metrics.ts'
import { createScheduler } from '../../src/calls/scheduler.ts'
import type { Session } from '../../src/session/session.ts'
import { SessionManager } from '../../src/session/manager.ts'
import { RuleRegistry } from '../../src/approval/rule-registry.ts'
import { ruleSettings } from '../../src/approval/config.ts'
import type { Models } from '../../src/loop/model-choice.ts'
import {
  UNRESTRICTED,
  type CallParts,
  NO_JOBS,
  NO_SECRETS,
  PLAIN_RESTARTS,
  type SessionParts,
  UNKNOWN_ACCESS,
  type UserParts,
} from '../../src/session/parts.ts'
import type { EndJobs } from '../../src/tools/background/end-jobs.ts'
import type { PollJobs } from '../../src/tools/background/ends.ts'
import { SHUTDOWN } from '../../src/tools/tool-error.ts'
import { defineTool, type Tool } from '../../src/tools/tool.ts'
import { createRegistry } from '../../src/tools/registry.ts'
import type { Log } from '../../src/log.ts'
import { type FakeProvider, type Scripted, startFakeProvider } from './fake-provider.ts'

type RulesSection = NonNullable<Parameters<typeof ruleSettings>[0]>

export const SYSTEM = 'You are a test.'

export interface Core {
  provider: FakeProvider
  store: SessionStore
  manager: SessionManager
  warnings: { fields: Record<string, unknown>; message: string }[]
  /** Acts like SIGTERM: nothing is stored from now on. */
  leave(): Promise<void>
}

/** The dependencies of a core, side by side, so that a test names the one that it changes. */
export type FlatParts = CallParts &
  UserParts &
  SessionParts['restarts'] &
  SessionParts['prompts'] &
  Omit<SessionParts, 'calls' | 'users' | 'jobs' | 'restarts' | 'prompts'> & {
    maxTurns: number
    pollJobs: PollJobs
    endJobs: EndJobs
    portsOf: SessionParts['jobs']['portsOf']
  }

export interface CoreOptions {
  tools?: readonly Tool[]
  parts?: Partial<FlatParts & Models>
  /** Everybody's rules, as in the configuration file. */
  rules?: RulesSection
  approvalTtlMs?: number
  /** The last word on what the sessions work with. */
  wrap?: (parts: FlatParts) => FlatParts
}

/** A folder, a provider, and as many cores on them, one after another, as a test wants to start. */
export class AgentBench implements AsyncDisposable {
  readonly folder = mkdtempSync(join(tmpdir(), 'sandlot-agent-'))
  readonly provider: FakeProvider
  readonly #cores: Core[] = []

  static async start(script: readonly Scripted[] = []): Promise<AgentBench> {
    return new AgentBench(await startFakeProvider(script))
  }

  private constructor(provider: FakeProvider) {
    this.provider = provider
  }

  async core(options: CoreOptions = {}): Promise<Core> {
    const core = await openCore(this.folder, this.provider, options)
    this.#cores.push(core)
    return core
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const core of this.#cores) await core.leave()
    rmSync(this.folder, { recursive: true, force: true })
    await this.provider.close()
  }
}

/** A core on the store in this folder, which asks the model of this provider. */
export async function openCore<P extends Pick<FakeProvider, 'baseUrl'>>(
  folder: string,
  provider: P,
  options: CoreOptions = {},
): Promise<Omit<Core, 'provider'> & { provider: P }> {
  const store = await openSessionStore(join(folder, 'sessions.db'))
  const registry = createRegistry()
  registry.register(...(options.tools ?? [echoTool()]))
  const scheduler = createScheduler({
    maxConcurrent: 10,
    policies: createPolicies({
      metrics: createToolMetrics(),
      toolTimeoutMs: 10_000,
      outputLimitBytes: 1024 * 1024,
      approvalTtlMs: options.approvalTtlMs ?? 60_000,
    }),
  })
  const leaving = new AbortController()
  const warnings: Core['warnings'] = []
  const log: Log = {
    info: () => undefined,
    warn: (fields, message) => void warnings.push({ fields, message }),
  }
  const { model, choices, fallbacks, ...others } = options.parts ?? {}
  const { maxTurns = 20 } = others
  const parts: FlatParts = {
    ...UNRESTRICTED,
    ...PLAIN_RESTARTS,
    store,
    rules: new RuleRegistry(store.people.rules, ruleSettings(options.rules), Date.now),
    models: {
      model: model ?? createHttpModel({ baseUrl: provider.baseUrl, apiKey: 'sk-test', model: 'fake' }),
      choices,
      fallbacks,
    },
    system: SYSTEM,
    tools: () => Promise.resolve(registry),
    runCalls: (calls, context) => scheduler.run(calls, context),
    sandbox: () =>
      Promise.reject(new SandboxError('engine_unavailable', 'There is no sandbox in this test.')),
    externalAccess: () => UNKNOWN_ACCESS,
    maxTurns,
    limitsOf: () => ({ maxTurns }),
    pollJobs: NO_JOBS.poll,
    endJobs: NO_JOBS.end,
    portsOf: NO_JOBS.portsOf,
    namesChats: false,
    ownership: soleOwner(),
    promptQueue: NO_QUEUE,
    secrets: NO_SECRETS,
    retry: { attempts: 4, baseMs: 1, capMs: 4, longestWaitMs: 50 },
    leaving: leaving.signal,
    now: Date.now,
    log,
    ...others,
  }
  const manager = new SessionManager(sessionParts(options.wrap?.(parts) ?? parts))
  let left = false
  const leave = async (): Promise<void> => {
    if (left) return
    left = true
    leaving.abort(SHUTDOWN)
    await manager.leave()
    await store.close()
  }
  return { provider, store, manager, warnings, leave }
}

export function sessionParts(parts: FlatParts): SessionParts {
  return {
    ...parts,
    prompts: parts,
    calls: parts,
    users: parts,
    jobs: { poll: parts.pollJobs, end: parts.endJobs, portsOf: parts.portsOf },
    restarts: parts,
  }
}

export async function newSession(core: Core, mode: Mode = 'yolo'): Promise<Session> {
  return core.manager.create({ userId: 'u_ada', cwd: '/workspace', mode })
}

/** Resolves when no prompt runs. */
export async function whenIdle(session: Session): Promise<void> {
  while (session.running) await sleep(2)
}

/** Prompt and wait for the end. */
export async function ask(session: Session, text: string): ReturnType<Session['prompt']> {
  const accepted = await session.prompt(text)
  await accepted.done
  return accepted
}

// ── Tools ───────────────────────────────────────────────────────────────────────────────────────────────

/** Reads. Answers with its text. */
export function echoTool(): Tool {
  return defineTool({
    name: 'echo',
    description: 'Says it again.',
    kind: 'other',
    input: z.strictObject({ text: z.string().describe('What to say.') }),
    readOnly: true,
    title: () => 'Echo',
    // oxlint-disable-next-line require-yield
    async *execute({ text }) {
      return { status: 'completed', forModel: text }
    },
  })
}

/** A tool that runs until the test says so, or until it is aborted. */
export interface Held {
  tool: Tool
  /** Keys of the calls that have begun, in order. */
  begun: string[]
  /** Let the call with this key end. */
  release(key: string): void
  /** Resolves when this many calls have begun. */
  whenBegun(count: number): Promise<void>
}

/** `readOnly: false`: it needs an approval outside `yolo`. */
export function heldTool(name: string, readOnly: boolean): Held {
  const begun: string[] = []
  const gates = new Map<string, PromiseWithResolvers<void>>()
  const waiting: { count: number; resolve: () => void }[] = []
  const gate = (key: string): PromiseWithResolvers<void> => {
    const known = gates.get(key) ?? Promise.withResolvers<void>()
    gates.set(key, known)
    return known
  }
  const tool = defineTool({
    name,
    description: 'Runs until it is let go.',
    kind: 'other',
    input: z.strictObject({ key: z.string().describe('Its key.') }),
    readOnly,
    title: ({ key }) => `${name} ${String(key)}`,
    async *execute({ key }, ctx) {
      begun.push(key)
      for (const one of waiting) if (begun.length >= one.count) one.resolve()
      const data = `output of ${key}\n`
      yield { type: 'output', piece: { offset: 0, end: data.length, data } }
      const aborted = Promise.withResolvers<never>()
      const onAbort = (): void => aborted.reject(ctx.signal.reason)
      if (ctx.signal.aborted) onAbort()
      ctx.signal.addEventListener('abort', onAbort, { once: true })
      await Promise.race([gate(key).promise, aborted.promise])
      return { status: 'completed', forModel: `done ${key}` }
    },
  })
  return {
    tool,
    begun,
    release: (key) => gate(key).resolve(),
    whenBegun: (count) => {
      if (begun.length >= count) return Promise.resolve()
      const { promise, resolve } = Promise.withResolvers<void>()
      waiting.push({ count, resolve })
      return promise
    },
  }
}

// ── Reading logs ────────────────────────────────────────────────────────────────────────────────────────

/** The Sandlot events of a log, in order. */
export function happened<T extends SandlotEvent['type']>(
  log: readonly SessionEvent[],
  type: T,
): Extract<SandlotEvent, { type: T }>[] {
  return log
    .map(sandlotEventOf)
    .filter((event): event is Extract<SandlotEvent, { type: T }> => event?.type === type)
}

/** Outcomes by call, as `status reason`. */
export function outcomes(log: readonly SessionEvent[]): Record<string, string[]> {
  const found: Record<string, string[]> = {}
  for (const event of log) {
    if (!isOutcome(event)) continue
    const { reason } = metaOf(event)
    ;(found[event.toolCallId] ??= []).push([event.status, reason].filter(Boolean).join(' '))
  }
  return found
}

/** Texts for the model of each ended call. */
export function textsForModel(log: readonly SessionEvent[]): Record<string, string> {
  return Object.fromEntries(
    log.filter(isOutcome).map((event) => [event.toolCallId, event.rawOutput?.forModel ?? '']),
  )
}

/** Resolves with the first event of the session, past or to come, that `wanted` accepts. */
export async function whenEvent(
  session: Session,
  wanted: (event: SessionEvent) => boolean,
): Promise<SessionEvent> {
  const subscription = session.subscribe(0)
  try {
    const past = subscription.catchUp.find(wanted)
    if (past !== undefined) return past
    for await (const event of subscription.live) if (wanted(event)) return event
  } finally {
    subscription.close()
  }
  throw new Error('the session ended without that event')
}

export function whenHappened(session: Session, type: SandlotEvent['type']): Promise<SessionEvent> {
  return whenEvent(session, (event) => sandlotEventOf(event)?.type === type)
}
