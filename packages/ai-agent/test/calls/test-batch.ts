/** A batch as a session would run it: stores settled events before it asks for the next, keeps outputs without holes. */
import type { Mode } from '@sandlot/shared/chat/mode'
import { type SessionEvent, isLive, isOutcome, metaOf, sandlotEventOf } from '@sandlot/shared/chat/events'
import { callsBefore } from '../../src/history/read-log.ts'
import { newId } from '@sandlot/shared/base/ids'
import { SandboxError } from '@sandlot/sandbox/errors'
import type { Sandboxes } from '@sandlot/sandbox/sandboxes'
import type { Rule } from '@sandlot/shared/chat/rules'
import { judge } from '../../src/approval/engine.ts'
import { approvalOptions } from '../../src/approval/options.ts'
import { callRequest } from '../../src/approval/request.ts'
import { createPolicies } from '../../src/calls/policies/index.ts'
import { type ToolMetrics, createToolMetrics } from '../../src/metrics/tool-metrics.ts'
import type { BatchContext } from '../../src/calls/batch.ts'
import { createScheduler } from '../../src/calls/scheduler.ts'
import type { RawToolCall } from '../../src/calls/tool-request-adapter.ts'
import { builtinTools } from '../../src/tools/builtin/index.ts'
import { createRegistry } from '../../src/tools/registry.ts'
import type { ResultLimits } from '../../src/tools/output/truncate-output.ts'
import type { ApprovalAnswer, Policy, Tool, ToolOutcome } from '../../src/tools/tool.ts'

type SchedulerParts = Parameters<typeof createScheduler>[0]

type PolicySettings = Parameters<typeof createPolicies>[0]

export interface TestBatchOptions {
  sandboxes?: () => Sandboxes
  tools?: readonly Tool[]
  mode?: Mode
  maxConcurrent?: number
  policies?: (settings: PolicySettings) => Policy[]
  settings?: Partial<PolicySettings>
  results?: ResultLimits
  /** Epoch milliseconds. Default `Date.now`. */
  now?: () => number
  /** Answers an approval. Default: none is asked, because the mode is yolo. */
  answer?: (callId: string) => Promise<ApprovalAnswer> | ApprovalAnswer
}

export class TestBatch {
  /** Its own: an attempt of a call has the same command id wherever it is made. */
  readonly promptId = newId('p')
  /** Settled events, as stored. */
  readonly log: SessionEvent[] = []
  /** Everything, in order. */
  readonly events: SessionEvent[] = []
  readonly outputs = new Map<string, Buffer>()
  readonly logged: { level: 'info' | 'warn'; fields: Record<string, unknown>; message: string }[] = []
  readonly metrics: ToolMetrics = createToolMetrics()
  readonly stop = new AbortController()
  readonly cancels = new Map<string, AbortController>()
  rules: readonly Rule[] = []
  mode: Mode
  /** External access of commands. */
  externalAccess: string | undefined
  readonly #options: TestBatchOptions
  readonly #scheduler
  readonly #registry = createRegistry()

  constructor(options: TestBatchOptions = {}) {
    this.#options = options
    this.mode = options.mode ?? 'yolo'
    this.#registry.register(...(options.tools ?? builtinTools()))
    const settings: PolicySettings = {
      metrics: this.metrics,
      toolTimeoutMs: 60_000,
      outputLimitBytes: 256 * 1024 * 1024,
      approvalTtlMs: 60_000,
      ...options.settings,
    }
    const parts: SchedulerParts = {
      policies: (options.policies ?? createPolicies)(settings),
      maxConcurrent: options.maxConcurrent ?? 10,
      results: options.results,
    }
    this.#scheduler = createScheduler(parts)
  }

  /** Runs the calls and returns their outcomes. `watch` sees each event once it is stored; false: go away at once. */
  async run(
    calls: readonly RawToolCall[],
    watch: (event: SessionEvent) => unknown = () => true,
  ): Promise<ToolOutcome[]> {
    const running = this.#scheduler.run(calls, this.context())
    for (;;) {
      const step = await running.next()
      if (step.done === true) return step.value
      this.events.push(step.value)
      if (!isLive(step.value)) this.log.push(step.value)
      if ((await watch(step.value)) === false) {
        await running.return([])
        return []
      }
    }
  }

  /** One call of a tool. */
  async call(name: string, args: Record<string, unknown>, id = `c${this.log.length}`): Promise<ToolOutcome> {
    const [outcome] = await this.run([{ id, name, args }])
    if (outcome === undefined) throw new Error('there was no outcome')
    return outcome
  }

  context(): BatchContext {
    const { sandboxes, answer } = this.#options
    const begun = new Set(
      this.log.flatMap((event) =>
        event.sessionUpdate === 'tool_call_update' && event.status === 'in_progress'
          ? [event.toolCallId]
          : [],
      ),
    )
    return {
      ids: { sessionId: 's_test', userId: 'u_test', promptId: this.promptId, turn: 1 },
      tools: this.#registry,
      secret: () => Promise.resolve(undefined),
      signal: this.stop.signal,
      cancelSignal: (callId) => this.cancelOf(callId).signal,
      async sandbox(signal) {
        if (sandboxes === undefined)
          throw new SandboxError('engine_unavailable', 'This test has no sandboxes.')
        return sandboxes().acquire('u_test', signal)
      },
      approvals: {
        of: (callId) => ({
          state: this.log.some((event) => isAskedAbout(event, callId)) ? 'pending' : 'none',
          links: this.log.flatMap((event) => {
            const happened = sandlotEventOf(event)
            return happened?.type === 'approval_asked' && happened.toolCallId === callId
              ? (happened.links ?? [])
              : []
          }),
          answer: async () => (await answer?.(callId)) ?? { allowed: false, by: 'unattended' },
        }),
        judge: async (call, by) => {
          const request = callRequest(call, by?.paths)
          const judgement = judge(request, this.rules, this.mode, {
            externalAccess: this.externalAccess,
            lost: by?.lost,
          })
          return { ...judgement, options: approvalOptions(request, judgement, 'always') }
        },
      },
      before: {
        previousAttempt: (callId) =>
          this.log
            .filter((event) => event.sessionUpdate === 'tool_call_update' && event.toolCallId === callId)
            .map((event) => metaOf(event).attempt)
            .findLast((attempt) => attempt !== undefined),
        begunBefore: (callId) => begun.has(callId),
        begunAt: (callId) => callsBefore(this.log).begunAt(callId),
        announced: (callId) =>
          this.log.some((event) => event.sessionUpdate === 'tool_call' && event.toolCallId === callId),
      },
      outputs: {
        append: async (callId, offset, bytes) => {
          const known = this.outputs.get(callId) ?? Buffer.alloc(0)
          if (offset > known.length) throw new Error(`a hole in the output: ${known.length} to ${offset}`)
          this.outputs.set(callId, Buffer.concat([known, bytes.subarray(known.length - offset)]))
          return undefined
        },
        read: async (callId, from, to) => this.outputs.get(callId)?.subarray(from, to) ?? new Uint8Array(),
      },
      events: () => this.log,
      now: this.#options.now ?? Date.now,
      log: {
        info: (fields, message) => void this.logged.push({ level: 'info', fields, message }),
        warn: (fields, message) => void this.logged.push({ level: 'warn', fields, message }),
      },
    }
  }

  cancelOf(callId: string): AbortController {
    const known = this.cancels.get(callId) ?? new AbortController()
    this.cancels.set(callId, known)
    return known
  }

  /** Ids of the calls that have their outcome, in the order of the log. */
  settled(): string[] {
    return this.log.flatMap((event) => (isOutcome(event) ? [event.toolCallId] : []))
  }

  /** The log in short: `announced a`, `in_progress a`, `completed a`, `asked a` … */
  story(): string[] {
    return this.log.map((event) => {
      if (event.sessionUpdate === 'tool_call') return `announced ${event.toolCallId}`
      if (event.sessionUpdate === 'tool_call_update')
        return `${event.status ?? 'changed'} ${event.toolCallId}`
      const happened = sandlotEventOf(event)
      return happened?.type === 'approval_asked' ? `asked ${happened.toolCallId}` : event.sessionUpdate
    })
  }
}

function isAskedAbout(event: SessionEvent, callId: string): boolean {
  const happened = sandlotEventOf(event)
  return happened?.type === 'approval_asked' && happened.toolCallId === callId
}
