/**
 * A whole answer, put together from the events of a Responses stream (or from one whole response).
 *
 * Text and thoughts that were handed out stand: the whole item only adds what is missing at their
 * end. Of a call the whole item counts, in the latest form that can be read.
 */
import type { TokenUsage } from '@sandlot/shared/chat/event-meta'
import type { SetIn } from '@sandlot/shared/chat/reasons'
import { foreignAnswer, modelError } from '../../errors.ts'
import { finishReason } from '../../finish-words.ts'
import { type JsonObject, isObject, member, numberMember, textMember } from '../../json.ts'
import type { ModelAnswer, ModelCall, ModelChunk, ReplayItem } from '../../model.ts'
import { withoutRepetitions } from '../../normalize-answer.ts'
import type { AnswerReader } from '../wire.ts'
import { type OutputItem, BETWEEN_MESSAGES, OutputItems, isRefusal, textsIn } from './items.ts'

/** Events of which nearly all of a stream consists. */
const PIECES = new Set([
  'response.output_text.delta',
  'response.function_call_arguments.delta',
  'response.reasoning_summary_text.delta',
  'response.reasoning_text.delta',
])

/** The end of a response, as the name of an event or as a status. */
const ENDS = new Set(['completed', 'done', 'incomplete', 'failed', 'cancelled'])

export class ResponseReader implements AnswerReader {
  readonly #onPiece: (piece: ModelChunk) => void
  readonly #items = new OutputItems()
  #text = ''
  #thought = ''
  /** The item whose text, and the one whose thought, was handed out last. */
  #speaker: OutputItem | undefined
  #thinker: OutputItem | undefined
  /** The texts of two messages came in turns. */
  #mixed = false
  #refused = false
  #finish: ModelAnswer['finish'] | undefined
  #usage: TokenUsage = {}

  constructor(onPiece: (piece: ModelChunk) => void) {
    this.#onPiece = onPiece
  }

  get finished(): boolean {
    return this.#finish !== undefined
  }

  get quiet(): boolean {
    return this.finished
  }

  get over(): boolean {
    return this.finished
  }

  isPiece(chunk: unknown): boolean {
    return (
      isObject(chunk) &&
      PIECES.has(String(chunk['type'])) &&
      typeof chunk['delta'] === 'string' &&
      (chunk['error'] === undefined || chunk['error'] === null)
    )
  }

  checkWhole(body: unknown, setIn: SetIn | undefined): void {
    if (this.finished) return
    throw isResponse(body)
      ? modelError('provider_error', 'The model provider sent a response that has not ended.')
      : foreignAnswer('JSON that is no response of the Responses API', setIn)
  }

  push(chunk: JsonObject, event: string): void {
    const type = textMember(chunk, 'type') ?? event
    const name = type.replace(/^response\./, '')
    const inner = chunk['response']
    const response = isObject(inner) ? inner : isResponse(chunk) ? chunk : undefined
    if (response !== undefined) {
      this.#usage = readUsage(response['usage']) ?? this.#usage
      const status = textMember(response, 'status') ?? ''
      const says = response === chunk && !ENDS.has(name) ? status : name
      if (ENDS.has(says)) this.#end(ENDS.has(status) && says !== 'failed' ? status : says, response)
    } else if (ENDS.has(name) && type !== name) this.#end(name, {})
    else if (isObject(chunk['item'])) this.#readItem(chunk['item'], chunk, name === 'output_item.done')
    else if (Array.isArray(chunk['choices']))
      throw modelError('protocol', 'The model provider answered in the form of Chat Completions.')
    else this.#readPiece(name, chunk)
  }

  end(): void {}

  finish(): ModelAnswer {
    const { calls, replay } = this.#gather()
    return {
      text: this.#text,
      thought: this.#thought,
      calls,
      finish: this.#finishWord(calls),
      usage: this.#usage,
      replay,
    }
  }

  #finishWord(calls: readonly ModelCall[]): ModelAnswer['finish'] {
    if (this.#finish !== 'stop') return this.#finish ?? 'unknown'
    if (calls.length > 0) return 'tool_calls'
    return this.#refused ? 'content_filter' : 'stop'
  }

  // ── Events ──

  #readPiece(name: string, chunk: JsonObject): void {
    const [, what, verb] = /^(.+)\.(delta|done)$/.exec(name) ?? []
    if (what === undefined) return
    if (what === 'function_call_arguments') return this.#readArguments(chunk, verb === 'done')
    const delta = chunk['delta']
    const text = verb === 'delta' ? (textsIn(delta)[0] ?? textMember(delta, 'text')) : doneText(chunk)
    if (text === undefined) return
    if (what === 'output_text' || what === 'refusal') {
      this.#refused ||= what === 'refusal'
      const item = this.#items.ofPiece('message', chunk)
      if (verb === 'delta') this.#say(item, text)
      else this.#complete(item, text)
    } else if (what.startsWith('reasoning')) {
      const item = this.#items.ofPiece('reasoning', chunk)
      item.source ??= what.includes('summary') ? 'summary' : 'content'
      if ((item.source === 'summary') !== what.includes('summary')) return
      const part = numberMember(chunk, 'summary_index') ?? numberMember(chunk, 'content_index') ?? 0
      if (verb === 'delta' || part > (item.part ?? -1)) this.#think(item, text, part)
    }
  }

  #readArguments(chunk: JsonObject, done: boolean): void {
    const item = this.#items.ofPiece('function_call', chunk)
    item.name ??= textMember(chunk, 'name')
    item.callId ??= textMember(chunk, 'call_id')
    if (done) item.takeArguments(chunk['arguments'], true)
    else if (!item.args.repeats(chunk['delta'])) item.args.push(chunk['delta'])
    this.#show(item)
  }

  #readItem(item: JsonObject, event: JsonObject, done: boolean): void {
    this.#take(this.#items.ofItem(item, event, done), item, done)
  }

  #take(known: OutputItem, item: JsonObject, done: boolean): void {
    known.take(item, done)
    if (known.kind === 'message') {
      this.#refused ||= isRefusal(item['content'])
      this.#complete(known, textsIn(item['content']).join(''))
    } else if (known.kind === 'reasoning') this.#completeThought(known, item)
    else if (known.kind === 'function_call' && done) this.#show(known)
  }

  #end(word: string, response: JsonObject): void {
    if (word === 'failed')
      throw modelError(
        'provider_error',
        'The model provider reported that its answer failed, without a reason.',
      )
    if (word === 'cancelled')
      throw modelError('stream_interrupted', 'The model provider cancelled its answer.')
    const output = Array.isArray(response['output']) ? response['output'].filter(isObject) : []
    for (const [index, known] of this.#items.ofResponse(output).entries())
      this.#take(known, output[index] ?? {}, true)
    const reason = textMember(response['incomplete_details'], 'reason')
    this.#finish =
      (reason === undefined ? undefined : finishReason(reason)) ??
      (word === 'incomplete' ? 'unknown' : 'stop')
  }

  // ── Text, thoughts and drafts ──

  #say(item: OutputItem, text: string): void {
    if (text === '') return
    if (this.#speaker !== item && this.#speaker !== undefined) {
      this.#mixed ||= item.text !== ''
      this.#speaker.chars += BETWEEN_MESSAGES.length
      this.#emit('text', BETWEEN_MESSAGES)
    }
    this.#speaker = item
    item.text += text
    item.chars += text.length
    this.#emit('text', text)
  }

  /** The whole text of a message, or of its only part. */
  #complete(item: OutputItem, whole: string): void {
    if (whole.startsWith(item.text)) this.#say(item, whole.slice(item.text.length))
  }

  #think(item: OutputItem, text: string, part: number | undefined): void {
    if (text === '') return
    const goesOn = this.#thinker === item && (part === undefined || item.part === part)
    const gap = this.#thought === '' || goesOn ? '' : BETWEEN_MESSAGES
    this.#thinker = item
    item.part = part
    item.text += (item.text === '' ? '' : gap) + text
    this.#emit('thought', gap + text)
  }

  #completeThought(item: OutputItem, { summary, content }: JsonObject): void {
    const summaries = textsIn(summary).join(BETWEEN_MESSAGES)
    const isSummary = item.source === undefined ? summaries !== '' : item.source === 'summary'
    const whole = isSummary ? summaries : textsIn(content).join(BETWEEN_MESSAGES)
    if (whole === '' || !whole.startsWith(item.text)) return
    item.source = isSummary ? 'summary' : 'content'
    this.#think(item, whole.slice(item.text.length), item.part)
  }

  #emit(type: 'text' | 'thought', text: string): void {
    if (text === '') return
    if (type === 'text') this.#text += text
    else this.#thought += text
    this.#onPiece({ type, text })
  }

  #show(item: OutputItem): void {
    const args = item.name === undefined ? undefined : item.args.takeGrown()
    if (item.name === undefined || args === undefined) return
    this.#onPiece({ type: 'call', place: this.#items.placeOf(item), name: item.name, args })
  }

  // ── The end ──

  #gather(): { calls: ModelCall[]; replay: ReplayItem[] | undefined } {
    const ordered = this.#items.ordered
    const made = ordered.filter(
      ({ kind, name, args }) => kind === 'function_call' && (name !== undefined || args.begun),
    )
    const ids = new Set(made.map(({ callId }) => callId))
    const byItem = new Map(
      made.map((item, place): [OutputItem, ModelCall] => {
        const cut = this.#finish === 'length' && item === made.at(-1)
        const id = item.callId ?? item.id ?? ownId(place + 1, ids)
        return [item, { id, name: item.name ?? '', ...item.readArguments(cut) }]
      }),
    )
    const calls = withoutRepetitions([...byItem.values()])
    const speakers = ordered.filter(({ chars }) => chars > 0)
    const one = this.#mixed || !inOrder(speakers, this.#text)
    const replay = ordered.flatMap((item): ReplayItem[] => {
      if (item.chars > 0) {
        const chars = one ? (item === speakers[0] ? this.#text.length : 0) : item.chars
        return chars === 0 ? [] : [{ chars, ...rawOf(item, OF_MESSAGES) }]
      }
      const call = byItem.get(item)
      if (call !== undefined) {
        const place = calls.indexOf(call)
        return place === -1 ? [] : [{ call: place, ...rawOf(item, OF_CALLS) }]
      }
      const raw = opaque(item)
      return raw === undefined ? [] : [{ raw }]
    })
    return { calls, replay: isPlain(replay) ? undefined : replay }
  }
}

/** The texts of the items, one behind the other, are the text. */
function inOrder(speakers: readonly OutputItem[], text: string): boolean {
  return speakers.map((item) => item.text).join(BETWEEN_MESSAGES) === text
}

function ownId(number: number, taken: ReadonlySet<string | undefined>): string {
  const id = `call_${number}`
  return taken.has(id) ? `${id}_own` : id
}

/** Members that text and calls hold already, and those that refer to what no provider stored. */
const OF_MESSAGES = new Set(['type', 'id', 'role', 'status', 'content', 'object'])
const OF_CALLS = new Set([
  'type',
  'id',
  'call_id',
  'status',
  'name',
  'arguments',
  'function',
  'object',
  'parsed_arguments',
])

/** The members that must return with it, for example the `phase` of a message. */
function rawOf({ raw }: OutputItem, known: ReadonlySet<string>): { raw?: JsonObject } {
  const rest = Object.entries(raw).filter(([name, value]) => !known.has(name) && value !== null)
  return rest.length === 0 ? {} : { raw: Object.fromEntries(rest) }
}

/**
 * An item that the provider understands alone: reasoning, if it has more than a summary, and what
 * is encrypted. Reports of tools that the provider ran itself are not asked for again.
 */
function opaque({ kind, raw }: OutputItem): JsonObject | undefined {
  const { status: _, ...item } = raw
  const encrypted = textMember(item, 'encrypted_content') !== undefined
  const said = kind === 'reasoning' && hasReasoningText(item['content'])
  if (!encrypted && !said) return undefined
  const members = Object.entries(item).filter(([, value]) => value !== null)
  return {
    ...Object.fromEntries(members),
    ...(kind === 'reasoning' ? { summary: item['summary'] ?? [] } : {}),
  }
}

/** LiteLLM repeats a summary there as the text of a message. */
function hasReasoningText(content: unknown): boolean {
  return (
    Array.isArray(content) &&
    content.some(
      (part) => member(part, 'type') === 'reasoning_text' && textMember(part, 'text') !== undefined,
    )
  )
}

/** True if a message of text and calls says the same. */
function isPlain(replay: readonly ReplayItem[]): boolean {
  const texts = replay.filter(({ chars }) => chars !== undefined)
  return (
    replay.every(({ raw }) => raw === undefined) &&
    texts.length <= 1 &&
    (texts.length === 0 || replay[0]?.chars !== undefined)
  )
}

function doneText(chunk: JsonObject): string | undefined {
  return textMember(chunk, 'text') ?? textMember(chunk, 'refusal')
}

function isResponse(value: unknown): value is JsonObject {
  return isObject(value) && (value['object'] === 'response' || Array.isArray(value['output']))
}

function readUsage(usage: unknown): TokenUsage | undefined {
  const input = numberMember(usage, 'input_tokens') ?? numberMember(usage, 'prompt_tokens')
  const output = numberMember(usage, 'output_tokens') ?? numberMember(usage, 'completion_tokens')
  if ((input ?? 0) === 0 && (output ?? 0) === 0) return undefined
  const ofInput = member(usage, 'input_tokens_details') ?? member(usage, 'prompt_tokens_details')
  const ofOutput = member(usage, 'output_tokens_details') ?? member(usage, 'completion_tokens_details')
  return {
    input,
    output,
    cached: numberMember(ofInput, 'cached_tokens'),
    reasoning: numberMember(ofOutput, 'reasoning_tokens'),
  }
}
