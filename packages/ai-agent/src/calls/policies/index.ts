/** The policies round every call, listed once, outermost first: the order is the documentation. */
import type { Execute, Policy } from '../../tools/tool.ts'
import { approve } from './approve.ts'
import { cache } from './cache.ts'
import { inOrder } from './in-order.ts'
import { concurrency } from './concurrency.ts'
import { metrics } from './metrics.ts'
import { refuse } from './refuse.ts'
import { once } from './once.ts'
import { rateLimit } from './rate-limit.ts'
import { retry } from './retry.ts'
import { saveOutput } from './save-output.ts'
import { settle } from './settle.ts'
import { timeout } from './timeout.ts'
import type { ToolMetrics } from '../../metrics/tool-metrics.ts'
import { validate } from './validate.ts'

interface PolicySettings {
  metrics: ToolMetrics
  /** Milliseconds, for tools that declare none (`SANDLOT_TOOL_TIMEOUT_MS`). */
  toolTimeoutMs: number
  /** Bytes of one call's output that are stored (`SANDLOT_OUTPUT_LIMIT`). */
  outputLimitBytes: number
  /** Milliseconds after which an unanswered approval is denied (`SANDLOT_APPROVAL_TTL`). */
  approvalTtlMs: number
}

export function createPolicies(settings: PolicySettings): Policy[] {
  return [
    settle(),
    metrics(settings.metrics),
    // Before anything that says that nothing was run.
    once(),
    validate(),
    refuse(),
    approve(settings.approvalTtlMs),
    inOrder(),
    // Again: a call before it may have used up what was left, or ended the prompt.
    refuse(),
    rateLimit(),
    concurrency(),
    saveOutput(settings.outputLimitBytes),
    retry(),
    // Inside: what it knows is an answer, not how often its call was tried.
    cache(),
    timeout(settings.toolTimeoutMs),
  ]
}

/** Wrap `innermost` so that the first policy is the outermost. */
export function applyPolicies(policies: readonly Policy[], innermost: Execute): Execute {
  return policies.reduceRight((next, policy) => policy(next), innermost)
}
