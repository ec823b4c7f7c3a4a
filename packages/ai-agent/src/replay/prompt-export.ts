/**
 * One prompt as a record: what the model was told, what happened, how each call ended, what it used
 * up. A pure function over the log and the frames of its requests, made in slices of the event
 * loop: that of a long prompt takes seconds. Secrets are masked by shape (their values never enter
 * a log), long texts are cut, outputs are references.
 */
import { type SessionEvent, isLive, metaOf, sandlotEventOf } from '@sandlot/shared/chat/events'
import type { PromptTiming, RequestMark, TokenUsage } from '@sandlot/shared/chat/event-meta'
import { makeScrubber } from '@sandlot/shared/base/scrub'
import { pauseWhenDue } from '@sandlot/shared/node/time-slices'
import { type ExecutionResult, executionResult, promptEndOf } from '../history/read-log.ts'
import { branchOf } from '../history/branch.ts'
import { modelMessages, turnsOf } from '../history/model-messages.ts'
import { spentBy } from '../limits/budgets.ts'
import type { ModelMessage } from '../model/model.ts'
import { type RequestFrame, bodyOf, digestOf } from './mark.ts'
import { requestAt } from './replay.ts'

/** Characters of one text in the record. */
const TEXT_CHARS = 20_000
/** No secret that is known by its shape is longer (a private key is). */
const SECRET_CHARS = 21_000
/** Texts from this length on are scrubbed once: each request of the prompt has them again. */
const KEPT_CHARS = 200

type Hide = (text: string) => string

/** System prompts and tools by their digest, for those that are still stored. */
type RequestFrames = ReadonlyMap<string, RequestFrame>

interface ExportedRequest {
  turn: number
  /** The digest of its frame, which names it in `frames`. */
  frame: string
  /** SHA-256 of the body that was sent. */
  body: string
  /**
   * What the model was told: so many of `messages` from the first on, or these, where its history
   * was another one.
   */
  messages: number | ModelMessage[]
  /**
   * Made again from this record alone, it has the bytes that were sent: nothing in it
   * was hidden or cut.
   */
  verbatim: boolean
}

interface PromptExport {
  version: 2
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
  /** Of its end, where it was measured: what each is stands at `promptTiming`. */
  timing: PromptTiming
  /**
   * What the model had been told by the end, the system prompt first: of this prompt and of those
   * before it.
   */
  messages: ModelMessage[]
  /**
   * What its requests had beside their messages, by digest: the tools with their schemas, the
   * wire’s options, the window.
   */
  frames: Record<string, Omit<RequestFrame, 'system'>>
  /** Each that was answered, in order. Empty when none was. */
  requests: ExportedRequest[]
  /** In the model's order. `outputUrl` refers to the whole output. */
  calls: (ExecutionResult & { turn: number })[]
  /** Settled events of the prompt, as stored. */
  events: SessionEvent[]
}

/** The digests of the frames that `exportPrompt` wants. */
export function framesOf(log: readonly SessionEvent[], promptId: string): string[] {
  const marks = log
    .filter((event) => metaOf(event).promptId === promptId)
    .map((event) => metaOf(event).request)
  return [...new Set(marks.flatMap((mark) => (mark === undefined ? [] : [mark.frame])))]
}

/**
 * Undefined when the log has no such prompt. A frame that is not there takes its requests out of
 * the record.
 */
export async function exportPrompt(
  log: readonly SessionEvent[],
  promptId: string,
  frames: RequestFrames,
): Promise<PromptExport | undefined> {
  const events = log.filter((event) => !isLive(event) && metaOf(event).promptId === promptId)
  const [first] = events
  const last = log.findLastIndex((event) => metaOf(event).promptId === promptId)
  if (first === undefined) return undefined
  const begun = events.map(sandlotEventOf).find((event) => event?.type === 'prompt_started')
  const end = promptEndOf(log, promptId)
  const spent = spentBy(log, promptId)
  const scrub = makeScrubber([])
  const mask = maskWith(scrub)
  const asked = events.flatMap((event) => requestOf(event, frames))
  const latest = asked.at(-1)
  const told = modelMessages(
    branchOf(log.slice(0, last + 1)),
    latest?.frame.system ?? '',
    latest?.frame.reader,
  )
  const messages = await maskedEach(latest === undefined ? told.slice(1) : told, mask)
  const used = Object.fromEntries(asked.map(({ mark, frame }) => [mark.frame, besideMessages(frame)]))
  const record: PromptExport = {
    version: 2,
    promptId,
    ...(begun?.type === 'prompt_started' && begun.model !== undefined ? { model: mask(begun.model) } : {}),
    startedAt: metaOf(first).at,
    endedAt: end === undefined ? null : metaOf(log[last] ?? first).at,
    reason: end?.reason ?? null,
    usage: usageOf(events),
    cost: spent.unpriced > 0 || spent.tokens === 0 ? null : spent.cost,
    timing: timingOf(events),
    messages,
    frames: hidden(used, scrub),
    requests: [],
    calls: await maskedEach(callsOf(log, promptId), mask),
    events: await maskedEach(events, mask),
  }
  const texts = messages.map((message) => JSON.stringify(message))
  for (const one of asked) record.requests.push(await exported(log, one, record, texts, mask))
  return record
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

interface Asked {
  turn: number
  mark: RequestMark
  frame: RequestFrame
}

function requestOf(event: SessionEvent, frames: RequestFrames): Asked[] {
  const { request: mark, turn = 0 } = metaOf(event)
  const frame = mark === undefined ? undefined : frames.get(mark.frame)
  return mark === undefined || frame === undefined ? [] : [{ turn, mark, frame }]
}

function callsOf(log: readonly SessionEvent[], promptId: string): PromptExport['calls'] {
  return turnsOf(log, promptId).flatMap((turn) =>
    turn.calls.map((record) => ({ turn: turn.number, ...executionResult(record) })),
  )
}

/** The system prompt is the first message. */
function besideMessages({ tools, wire, reader, maxTokens }: RequestFrame): Omit<RequestFrame, 'system'> {
  return { tools, wire, reader, maxTokens }
}

/** `texts`: the record's messages as JSON. */
async function exported(
  log: readonly SessionEvent[],
  { turn, mark, frame }: Asked,
  { frames }: PromptExport,
  texts: readonly string[],
  mask: Hide,
): Promise<ExportedRequest> {
  await pauseWhenDue()
  const clean = await maskedEach(requestAt(log, mark.upTo, frame), mask)
  let isBeginning = clean.length <= texts.length
  for (const [place, message] of clean.entries()) {
    await pauseWhenDue()
    isBeginning &&= JSON.stringify(message) === texts[place]
  }
  const made = bodyOf(clean, frames[mark.frame] ?? besideMessages(frame))
  await pauseWhenDue()
  return {
    turn,
    frame: mark.frame,
    body: mark.body,
    messages: isBeginning ? clean.length : clean,
    verbatim: digestOf(made) === mark.body,
  }
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

/** A text scrubbed, then cut. */
function maskWith(scrub: Hide): Hide {
  const known = new Map<string, string>()
  return (text) => {
    if (text.length < KEPT_CHARS) return scrub(text)
    const masked = known.get(text) ?? shortened(text, scrub)
    known.set(text, masked)
    return masked
  }
}

/**
 * Of a long text only as much is scrubbed as is shown, and as a secret at the end of that could be
 * long.
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
