/**
 * One prompt as a record: what the model was told, what happened, how each call ended, what it used up. A pure function over
 * the log. Secrets are masked by shape (their values never enter a log), long texts are cut, outputs are references.
 */
import { type SessionEvent, isLive, metaOf, sandlotEventOf } from '@sandlot/shared/events'
import type { TokenUsage } from '@sandlot/shared/event-meta'
import { makeScrubber } from '@sandlot/shared/scrub'
import { type ExecutionResult, executionResults, promptEndOf } from './history.ts'
import { turnsOf } from './history-items.ts'
import { modelMessages } from './history-messages.ts'
import type { ModelMessage } from './model/model.ts'

/** Characters of one text in the record. */
const TEXT_CHARS = 20_000

export interface PromptExport {
  version: 1
  promptId: string
  model?: string
  /** Epoch milliseconds. `endedAt` is null while it runs, as `reason` is. */
  startedAt: number
  endedAt: number | null
  reason: string | null
  /** Summed over the answers, as the provider counted; cost in US dollars, null where no price was known. */
  usage: TokenUsage
  cost: number | null
  /** What the model had been told by the end, without the system prompt: of this prompt and of those before it. */
  messages: ModelMessage[]
  /** In the model's order. `outputUrl` refers to the whole output. */
  calls: (ExecutionResult & { turn: number })[]
  /** Settled events of the prompt, as stored. */
  events: SessionEvent[]
}

/** Undefined when the log has no such prompt. */
export function exportPrompt(log: readonly SessionEvent[], promptId: string): PromptExport | undefined {
  const events = log.filter((event) => !isLive(event) && metaOf(event).promptId === promptId)
  const [first] = events
  const last = log.findLastIndex((event) => metaOf(event).promptId === promptId)
  if (first === undefined) return undefined
  const begun = events.map(sandlotEventOf).find((event) => event?.type === 'prompt_started')
  const end = promptEndOf(log, promptId)
  const costs = events.flatMap((event) => metaOf(event).cost ?? [])
  const record: PromptExport = {
    version: 1,
    promptId,
    ...(begun?.type === 'prompt_started' && begun.model !== undefined ? { model: begun.model } : {}),
    startedAt: metaOf(first).at,
    endedAt: end === undefined ? null : metaOf(log[last] ?? first).at,
    reason: end?.reason ?? null,
    usage: usageOf(events),
    cost: costs.length === 0 ? null : costs.reduce((sum, one) => sum + one, 0),
    messages: modelMessages(log.slice(0, last + 1), '').slice(1),
    calls: turnsOf(log, promptId).flatMap(({ number }) =>
      executionResults(log, { promptId, turn: number }).map((result) => ({ turn: number, ...result })),
    ),
    events,
  }
  return masked(record, makeScrubber([])) as PromptExport
}

function usageOf(events: readonly SessionEvent[]): TokenUsage {
  const sums: TokenUsage = {}
  for (const event of events) {
    const usage = event.sessionUpdate === 'usage_update' ? metaOf(event).usage : undefined
    for (const kind of ['input', 'output', 'cached', 'reasoning'] as const)
      if (usage?.[kind] !== undefined) sums[kind] = (sums[kind] ?? 0) + usage[kind]
  }
  return sums
}

/** The same with every text scrubbed, then cut. */
function masked(value: unknown, scrub: (text: string) => string): unknown {
  if (typeof value === 'string') return shortened(scrub(value))
  if (Array.isArray(value)) return value.map((item) => masked(item, scrub))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, field]) => [shortened(scrub(key)), masked(field, scrub)]),
  )
}

function shortened(text: string): string {
  if (text.length <= TEXT_CHARS) return text
  return `${text.slice(0, TEXT_CHARS).toWellFormed()}[… ${text.length - TEXT_CHARS} more characters]`
}
