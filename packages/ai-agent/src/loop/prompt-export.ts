/**
 * One prompt as a record, from the log alone. Secrets are redacted by shape (their values never
 * enter a log), long texts are cut, outputs are references. Made in slices of the event loop.
 */
import { type SessionEvent, forReaders, isLive, metaOf, sandlotEventOf } from '@sandlot/shared/chat/events'
import type { PromptTiming, TokenUsage } from '@sandlot/shared/chat/event-meta'
import { makeScrubber } from '@sandlot/shared/base/scrub'
import { pauseWhenDue } from '@sandlot/shared/node/time-slices'
import { type ExecutionResult, executionResult, promptEndOf } from '../history/read-log.ts'
import { branchOf } from '../history/branch.ts'
import { bareCall } from '../history/plain.ts'
import { type Reader, modelMessages, turnsOf } from '../history/model-messages.ts'
import { spentBy } from '../limits/budgets.ts'
import type { ModelMessage } from '../model/model.ts'

/** Characters of one text in the record. */
const TEXT_CHARS = 20_000
/** No secret that is known by its shape is longer (a private key is). */
const SECRET_CHARS = 21_000

type Hide = (text: string) => string

interface ExportedRequest {
  turn: number
  /** SHA-256 of the body, as it was sent. */
  body: string
}

interface PromptExport {
  version: 3
  promptId: string
  model?: string
  /** Epoch milliseconds. `endedAt` is null while it runs, as `reason` is. */
  startedAt: number
  endedAt: number | null
  reason: string | null
  /**
   * Summed over the answers, as the provider counted; cost in US dollars, null where that of an
   * answer is not known.
   */
  usage: TokenUsage
  cost: number | null
  /** Measured at its end; see `promptTiming`. */
  timing: PromptTiming
  /** Messages of this prompt and of earlier ones; without the system prompt, which no log has. */
  messages: ModelMessage[]
  /** Those with a whole answer, in order. */
  requests: ExportedRequest[]
  /** In the model's order. `outputUrl` refers to the whole output. */
  calls: (ExecutionResult & { turn: number })[]
  /** Settled events of the prompt, as stored. */
  events: SessionEvent[]
}

/** Undefined when the log has no such prompt. */
export async function exportPrompt(
  log: readonly SessionEvent[],
  promptId: string,
): Promise<PromptExport | undefined> {
  const events = log.filter((event) => !isLive(event) && metaOf(event).promptId === promptId)
  const [first] = events
  const last = log.findLastIndex((event) => metaOf(event).promptId === promptId)
  if (first === undefined) return undefined
  const begun = events.map(sandlotEventOf).find((event) => event?.type === 'prompt_started')
  const end = promptEndOf(log, promptId)
  const spent = spentBy(log, promptId)
  const mask = maskWith(makeScrubber([]))
  const [, ...messages] = modelMessages(branchOf(log.slice(0, last + 1)), '', readerOf(events))
  return {
    version: 3,
    promptId,
    ...(begun?.type === 'prompt_started' && begun.model !== undefined ? { model: mask(begun.model) } : {}),
    startedAt: metaOf(first).at,
    endedAt: end === undefined ? null : metaOf(log[last] ?? first).at,
    reason: end?.reason ?? null,
    usage: usageOf(events),
    cost: spent.unpriced > 0 || spent.tokens === 0 ? null : spent.cost,
    timing: timingOf(events),
    messages: await maskedEach(messages.map(withoutReplay), mask),
    requests: events.flatMap(requestOf),
    calls: await maskedEach(callsOf(log, promptId), mask),
    events: await maskedEach(events.map(forReaders), mask),
  }
}

/** The record as a JSON document, in pieces to be sent one after another. */
export async function* documentOf(record: PromptExport): AsyncGenerator<string> {
  let text = ''
  for (const piece of jsonOf(record)) {
    text += piece
    await pauseWhenDue()
    if (text.length < PIECE_CHARS) continue
    yield text
    text = ''
  }
  yield text
}

const PIECE_CHARS = 64 * 1024

function* jsonOf(record: PromptExport): Generator<string> {
  let before = '{'
  for (const [key, value] of Object.entries(record)) {
    yield `${before}\n  ${JSON.stringify(key)}: `
    before = ','
    if (Array.isArray(value) && value.length > 0) yield* listOf(value)
    else yield indented(value, '  ')
  }
  yield '\n}\n'
}

function* listOf(items: readonly unknown[]): Generator<string> {
  let before = '['
  for (const item of items) {
    yield `${before}\n    ${indented(item, '    ')}`
    before = ','
  }
  yield '\n  ]'
}

/** No text of a JSON document has a line end in it. */
function indented(value: unknown, by: string): string {
  return JSON.stringify(value, null, 2).replaceAll('\n', `\n${by}`)
}

function requestOf(event: SessionEvent): ExportedRequest[] {
  const { turn = 0, requestDigest, request } = metaOf(event)
  const body = requestDigest ?? request?.body
  return body === undefined ? [] : [{ turn, body }]
}

/** Only the provider may see what it wants back. */
function withoutReplay(message: ModelMessage): ModelMessage {
  if (message.role !== 'assistant') return message
  const { role, content, calls } = message
  return { role, content, calls: calls.map((call) => bareCall(call, call.id)) }
}

/** The model that answered last. */
function readerOf(events: readonly SessionEvent[]): Reader {
  const counted = events.findLast((event) => event.sessionUpdate === 'usage_update')
  return counted === undefined ? {} : { model: metaOf(counted).model, contextWindow: counted.size }
}

function callsOf(log: readonly SessionEvent[], promptId: string): PromptExport['calls'] {
  return turnsOf(log, promptId).flatMap((turn) =>
    turn.calls.map((record) => ({ turn: turn.number, ...executionResult(record) })),
  )
}

function timingOf(events: readonly SessionEvent[]): PromptTiming {
  const end = events.find((event) => sandlotEventOf(event)?.type === 'prompt_ended')
  return end === undefined ? {} : (metaOf(end).promptTiming ?? {})
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

/** Each with every text masked. */
async function maskedEach<T>(items: readonly T[], mask: Hide): Promise<T[]> {
  const masked: T[] = []
  for (const item of items) {
    await pauseWhenDue()
    masked.push(hidden(item, mask))
  }
  return masked
}

/** A text scrubbed, then cut, each once: messages, calls and events repeat texts and keys. */
function maskWith(scrub: Hide): Hide {
  const known = new Map<string, string>()
  return (text) => {
    const masked = known.get(text) ?? shortened(text, scrub)
    known.set(text, masked)
    return masked
  }
}

/**
 * Scrubs only the shown part of a long text, and the length of a secret that may begin at its
 * end.
 */
function shortened(text: string, scrub: Hide): string {
  const start = scrub(text.slice(0, TEXT_CHARS + 2 * SECRET_CHARS))
  const isEnough = text.length > TEXT_CHARS + 2 * SECRET_CHARS && start.length >= TEXT_CHARS + SECRET_CHARS
  const clean = isEnough ? start : scrub(text)
  if (clean.length <= TEXT_CHARS) return clean
  const rest = isEnough ? text.length - TEXT_CHARS : clean.length - TEXT_CHARS
  return `${clean.slice(0, TEXT_CHARS).toWellFormed()}[… ${rest} more characters]`
}

/** The same with `hide` done to every text and key. */
function hidden<T>(value: T, hide: Hide): T
function hidden(value: unknown, hide: Hide): unknown {
  if (typeof value === 'string') return hide(value)
  if (Array.isArray(value)) return value.map((item: unknown) => hidden(item, hide))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, field]) => [hide(key), hidden(field, hide)]))
}
