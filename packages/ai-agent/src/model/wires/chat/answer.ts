/** A whole answer, put together from Chat Completions chunks (or from one whole completion). */
import type { TokenUsage } from '@sandlot/shared/chat/event-meta'
import { type ShownCall, CallAssembler } from './tool-calls.ts'
import { finishReason } from '../../finish-words.ts'
import { Increments, Reasoning } from './reasoning.ts'
import { type JsonObject, isObject, member, numberMember, textMember } from '../../json.ts'
import type { ModelAnswer, ModelChunk, ModelError } from '../../model.ts'
import { type Profile, DEFAULT_PROFILE } from '../../profiles.ts'
import type { SetIn } from '@sandlot/shared/chat/reasons'
import { foreignAnswer, modelError } from '../../errors.ts'
import type { AnswerReader } from '../wire.ts'
import { type AnswerPiece, ThinkTags } from './think-tags.ts'

/**
 * The texts of a stream in which every choice has a `message` and none a `delta`: pieces, or all
 * that was said so far in each.
 */
class MessageTexts {
  readonly #texts = new Map(
    ['content', 'reasoning_content', 'reasoning'].map((name) => [name, new Increments(true)]),
  )

  /** The message with what is new in it. */
  fresh(message: JsonObject): JsonObject {
    const texts = [...this.#texts].flatMap(([name, increments]) => {
      const text = message[name]
      return typeof text === 'string' ? [[name, increments.take(text)]] : []
    })
    return { ...message, ...Object.fromEntries(texts) }
  }

  /** The held-back rest. */
  end(): JsonObject {
    return Object.fromEntries([...this.#texts].map(([name, increments]) => [name, increments.end()]))
  }
}

/** Feed parsed chunks; pieces to show go to `onPiece` at once. */
export class AnswerAssembler implements AnswerReader {
  readonly #onPiece: (piece: ModelChunk) => void
  readonly #profile: Profile
  /** Pieces shown so far. */
  #shown = 0
  #text = ''
  #thought = ''
  readonly #increments: Increments
  readonly #tags: ThinkTags
  readonly #reasoning: Reasoning
  readonly #calls = new CallAssembler()
  readonly #messages = new MessageTexts()
  /** The kind of speech that deltas have brought. */
  #streamed: 'nothing' | 'thoughts' | 'text' = 'nothing'
  /** The thoughts between tags are those that come beside the text as well. */
  #twice = false
  /** The number of the choice that is the answer. */
  #number: number | undefined
  #severalCalls = false
  #finish: ModelAnswer['finish'] | undefined
  #wentOn = false
  #usage: TokenUsage = {}
  #extraContent: JsonObject = {}

  constructor(onPiece: (piece: ModelChunk) => void, profile: Profile = DEFAULT_PROFILE) {
    this.#onPiece = onPiece
    this.#profile = profile
    this.#increments = new Increments(profile.cumulative)
    this.#tags = new ThinkTags(profile.thinkTags)
    this.#reasoning = new Reasoning(profile)
  }

  /** The provider has said how the answer ended. Usage may still follow. */
  get finished(): boolean {
    return this.#finish !== undefined
  }

  /**
   * It ended, and nothing that came since speaks against it: some put a finish word on every chunk.
   */
  get quiet(): boolean {
    return this.finished && !this.#wentOn
  }

  /** Only `[DONE]` says so. */
  readonly over = false

  isPiece(chunk: unknown): boolean | 'exact' {
    const delta = deltaIn(chunk)
    if (delta === undefined) return false
    const withCalls = isPresent(member(delta, 'tool_calls')) || isPresent(member(delta, 'function_call'))
    return withCalls ? 'exact' : true
  }

  checkWhole(body: unknown, setIn: SetIn | undefined): void {
    const choices = member(body, 'choices')
    if (!Array.isArray(choices) || choices.length === 0) throw withoutChoice(body, setIn)
  }

  push(chunk: unknown): void {
    const choice = this.#choiceOf(member(chunk, 'choices'))
    this.#usage = latestUsage(this.#usage, usageIn(chunk, choice))
    if (choice === undefined) return

    const delta = member(choice, 'delta')
    const message = member(choice, 'message')
    const before = this.#shown
    if (isObject(delta)) this.#readMessage(delta)
    // A whole message is the answer where nothing was streamed, and a repetition where something
    // was.
    if (isObject(message)) this.#readWholeMessage(message)
    // The member of the older completions, from proxies that mix them.
    if (!isObject(delta) && !isObject(message)) this.#readContent(member(choice, 'text'), false)
    if (this.finished) this.#wentOn ||= this.#shown > before || (isObject(delta) && callsIn(delta).length > 0)
    const word = finishWord(choice) ?? textMember(delta, 'finish_reason')
    this.#finish = (word === undefined ? undefined : finishReason(word)) ?? this.#finish
  }

  /**
   * Several choices were never asked for: the first is the answer. The only one is, whatever number
   * it has.
   */
  #choiceOf(choices: unknown): JsonObject | undefined {
    if (!Array.isArray(choices)) return undefined
    const [only] = choices as unknown[]
    if (choices.length === 1 && isObject(only)) {
      const number = numberMember(only, 'index') ?? 0
      this.#number ??= number
      return this.#number === number ? only : undefined
    }
    const known = choices.filter(isObject)
    const numbers = known.map((each) => numberMember(each, 'index') ?? 0)
    this.#number ??= numbers.includes(0) ? 0 : numbers[0]
    const choice = known.find((_, place) => numbers[place] === this.#number)
    const message = choice?.['message']
    if (choice === undefined || !isObject(message) || callsIn(message).length > 0) return choice
    // Copilot gives Claude's text in one choice and its calls in another
    // (zeroclaw-labs/zeroclaw#2136).
    const others = known.map((each) => (isObject(each['message']) ? callsIn(each['message']) : []))
    const tool_calls = others.find((calls) => calls.length > 0)
    return tool_calls === undefined ? choice : { ...choice, message: { ...message, tool_calls } }
  }

  /** Text held back because it might have become something else. */
  end(): void {
    this.#think(this.#reasoning.end())
    this.#readSpeech(this.#messages.end())
    this.#emit(this.#apart([...this.#tags.push(this.#increments.end()), ...this.#tags.end()]))
  }

  /** The answer as it stands. */
  finish(): ModelAnswer {
    const finish = this.#finish ?? 'unknown'
    const calls = this.#calls.finish(finish === 'length')
    const replay = this.#reasoning.replay(this.#profile, calls.length > 0)
    if (Object.keys(this.#extraContent).length > 0) replay['extra_content'] = this.#extraContent
    return {
      ...(this.#tags.reread(this.#text) ?? { text: this.#text, thought: this.#thought }),
      calls,
      finish,
      usage: this.#usage,
      ...(Object.keys(replay).length === 0 ? {} : { replay: [{ raw: replay }] }),
    }
  }

  #readWholeMessage(message: JsonObject): void {
    if (this.#streamed !== 'text') {
      const fresh = this.#messages.fresh(message)
      const { content, refusal } = fresh
      this.#readSpeech(this.#streamed === 'nothing' ? fresh : { content, refusal })
    }
    if (this.#calls.complete) return
    // Calls that were streamed only in part are replaced by the whole ones.
    const calls = callsIn(message)
    if (calls.length > 0) this.#announce(this.#calls.replace(calls))
  }

  #readMessage(message: JsonObject): void {
    const before = this.#shown
    this.#readSpeech(message)
    if (saysText(message['content']) || saysText(message['refusal'])) this.#streamed = 'text'
    else if (this.#shown > before && this.#streamed === 'nothing') this.#streamed = 'thoughts'
    if (Array.isArray(message['tool_calls']) && message['tool_calls'].length > 0) this.#severalCalls = true
    // Proxies that still send `function_call` beside `tool_calls` say the same thing twice.
    const calls = this.#severalCalls ? callsIn({ tool_calls: message['tool_calls'] }) : callsIn(message)
    if (calls.length > 0) this.#announce(this.#calls.push(calls))
  }

  #announce(calls: readonly ShownCall[]): void {
    for (const call of calls) this.#show({ type: 'call', ...call })
  }

  #show(piece: ModelChunk): void {
    this.#shown++
    this.#onPiece(piece)
  }

  #readSpeech(message: JsonObject): void {
    const extra = message['extra_content']
    const marked = isObject(extra) && member(extra['google'], 'thought') === true
    if (isObject(extra)) this.#keepExtra(extra)
    const thought = this.#reasoning.push(message)
    this.#twice ||= this.#saysInTags(message['content'], thought)
    this.#think(thought)
    this.#readContent(message['content'], marked)
    this.#readContent(message['refusal'], marked)
  }

  /** `marked`: the provider says that this is a thought; it may still put it between tags. */
  #readContent(content: unknown, marked: boolean): void {
    if (typeof content === 'string') return this.#readText(content, marked)
    if (!isText(content)) return
    for (const part of Array.isArray(content) ? (content as unknown[]) : [content]) {
      const thinking = THINKING_PARTS.has(textMember(part, 'type') ?? '')
      const text = joinedText(PART_TEXTS.map((name) => member(part, name)).find(isText) ?? part)
      this.#readText(text, marked, thinking)
    }
  }

  #readText(text: string, marked: boolean, thinking = false): void {
    if (text === '') return
    if (thinking || (marked && !this.#tags.takes(text))) this.#think(text)
    else this.#emit(this.#apart(this.#tags.push(this.#increments.take(text))))
  }

  /** Without thoughts that were reported already. */
  #apart(pieces: readonly AnswerPiece[]): readonly AnswerPiece[] {
    return this.#twice ? pieces.filter(({ type }) => type === 'text') : pieces
  }

  /**
   * True if `content` repeats this thought between tags, as MiniMax does (can1357/oh-my-pi#2434).
   */
  #saysInTags(content: unknown, thought: string): boolean {
    if (typeof content !== 'string' || thought.trim() === '' || !this.#tags.takes(content)) return false
    const begun = content.trimStart()
    const open = this.#profile.thinkTags.map(([tag]) => tag).find((tag) => begun.startsWith(tag)) ?? ''
    const [inside, beside] = [begun.slice(open.length).trim(), thought.trim()]
    return inside !== '' && (inside.startsWith(beside) || beside.startsWith(inside))
  }

  #think(text: string): void {
    if (text === '') return
    // A provider that separates thoughts leaves no tags in the text.
    this.#emit([...(this.#twice ? [] : this.#tags.noTags()), { type: 'thought', text }])
  }

  #emit(pieces: readonly AnswerPiece[]): void {
    for (const piece of pieces) {
      if (piece.type === 'text') this.#text += piece.text
      else this.#thought += piece.text
      this.#show(piece)
    }
  }

  /**
   * Gemini's signatures come on the message or on its calls; its mark on thoughts is not wanted
   * back.
   */
  #keepExtra(extra: JsonObject): void {
    for (const [name, value] of Object.entries(extra)) {
      if (!isObject(value)) continue
      const { thought: _, ...rest } = value
      const known = member(this.#extraContent, name)
      if (Object.keys(rest).length > 0) {
        this.#extraContent = { ...this.#extraContent, [name]: { ...(isObject(known) ? known : {}), ...rest } }
      }
    }
  }
}

function withoutChoice(whole: unknown, setIn: SetIn | undefined): ModelError {
  const isCompletion =
    member(whole, 'choices') !== undefined ||
    isObject(member(whole, 'usage')) ||
    textMember(whole, 'object')?.startsWith('chat.completion') === true
  return isCompletion
    ? modelError('provider_error', 'The model provider sent a completion without an answer.')
    : foreignAnswer('JSON that is no chat completion', setIn)
}

/**
 * The delta of a chunk with one choice and no sign of a failure or of an end; undefined for others.
 */
function deltaIn(chunk: unknown): object | undefined {
  const choices = member(chunk, 'choices')
  if (!isObject(chunk) || !Array.isArray(choices) || choices.length !== 1) return undefined
  const choice: unknown = choices[0]
  const delta = member(choice, 'delta')
  if (!isObject(choice) || !isObject(delta)) return undefined
  const { error, x_groq, base_resp } = chunk
  const { finish_reason, native_finish_reason, message } = choice
  const signs = [error, x_groq, base_resp, finish_reason, native_finish_reason, message]
  return [...signs, choice['error'], delta['error']].some(isPresent) ? undefined : delta
}

function isPresent(value: unknown): boolean {
  return value !== undefined && value !== null && value !== ''
}

function saysText(content: unknown): boolean {
  return typeof content === 'string' ? content !== '' : Array.isArray(content) && content.length > 0
}

/** Under the name that the standard has, or under one that a proxy left as it was. */
function finishWord(choice: JsonObject): string | undefined {
  return (
    textMember(choice, 'finish_reason') ??
    textMember(choice, 'finishReason') ??
    textMember(choice, 'stop_reason')
  )
}

/** `tool_calls`, or what was before there were several: `function_call`. */
function callsIn({ tool_calls, function_call }: JsonObject): unknown[] {
  const calls: unknown[] = Array.isArray(tool_calls) ? tool_calls : isObject(tool_calls) ? [tool_calls] : []
  return calls.length === 0 && isObject(function_call) ? [{ index: 0, function: function_call }] : calls
}

/** Types of parts that are thoughts: Mistral's and Claude's, Databricks'. */
const THINKING_PARTS = new Set(['thinking', 'reasoning'])
/** Members that hold the text of a part; a summary of thoughts is a list of parts in turn. */
const PART_TEXTS = ['thinking', 'text', 'summary', 'refusal']

function isText(value: unknown): boolean {
  return value !== undefined && value !== null
}

/** A text, or the texts of a list of parts. */
function joinedText(value: unknown): string {
  if (typeof value === 'string') return value
  return Array.isArray(value) ? value.map((part) => textMember(part, 'text') ?? '').join('') : ''
}

/**
 * The counts in a chunk, or undefined. Null and zeros are how some say that they do not know yet.
 */
function usageIn(chunk: unknown, choice: unknown): TokenUsage | undefined {
  return (
    readUsage(member(chunk, 'usage')) ??
    readUsage(member(choice, 'usage')) ??
    readUsage(member(member(chunk, 'x_groq'), 'usage')) ??
    readUsage(member(member(choice, 'delta'), 'usage')) ??
    readTimings(member(chunk, 'timings'))
  )
}

/** The counts after another report: the last one of each kind, but no zero replaces a count. */
function latestUsage(known: TokenUsage, reported: TokenUsage | undefined): TokenUsage {
  if (reported === undefined) return known
  const counts = Object.entries(reported).filter(
    ([kind, count]) => count !== 0 || known[kind as keyof TokenUsage] === undefined,
  )
  return { ...known, ...Object.fromEntries(counts) }
}

function readUsage(usage: unknown): TokenUsage | undefined {
  if (!isObject(usage)) return undefined
  const first = (...readings: (number | undefined)[]): number | undefined =>
    readings.find((reading) => reading !== undefined)
  const details = usage['prompt_tokens_details'] ?? usage['input_tokens_details']
  const input = first(numberMember(usage, 'prompt_tokens'), inputTokens(usage))
  const output = first(numberMember(usage, 'completion_tokens'), numberMember(usage, 'output_tokens'))
  const cached = first(
    numberMember(details, 'cached_tokens'),
    numberMember(usage, 'prompt_cache_hit_tokens'),
    numberMember(usage, 'cached_tokens'),
    numberMember(usage, 'cache_read_input_tokens'),
    numberMember(usage, 'num_cached_tokens'),
  )
  const cacheWritten = first(
    numberMember(details, 'cache_write_tokens'),
    numberMember(usage, 'cache_creation_input_tokens'),
  )
  const cacheWrittenHour = numberMember(usage['cache_creation'], 'ephemeral_1h_input_tokens')
  const reasoning = first(
    numberMember(usage['completion_tokens_details'], 'reasoning_tokens'),
    numberMember(usage['output_tokens_details'], 'reasoning_tokens'),
    numberMember(usage, 'reasoning_tokens'),
  )
  const total = numberMember(usage, 'total_tokens')
  if ((input ?? 0) === 0 && (output ?? 0) === 0 && (total ?? 0) === 0) return undefined
  const beside = countedBeside(total, input, output, cached)
  const written = beside === 0 ? output : (output ?? 0) + beside
  // Besides a counted output there are only thoughts.
  const thought = reasoning ?? (beside > 0 && output !== undefined ? beside : undefined)
  return {
    input,
    output: written,
    cached,
    cacheWritten,
    cacheWrittenHour,
    reasoning: thought,
  }
}

/**
 * Tokens that stand in the total alone: xAI's and Gemini's thoughts, which others count in with the
 * output. A difference of just what came from the cache is a total that counts the cache twice.
 */
function countedBeside(total = 0, input = 0, output = 0, cached: number | undefined): number {
  const beside = total - input - output
  return beside > 0 && beside !== cached ? beside : 0
}

/**
 * Under Claude's own names what came from its cache, or went there, is counted beside the input.
 */
function inputTokens(usage: object): number | undefined {
  const input = numberMember(usage, 'input_tokens')
  if (input === undefined) return undefined
  const beside = ['cache_read_input_tokens', 'cache_creation_input_tokens']
  return beside.reduce((sum, name) => sum + (numberMember(usage, name) ?? 0), input)
}

/**
 * llama.cpp counts here when it was not asked for usage; its prompt count leaves out what was
 * cached.
 */
function readTimings(timings: unknown): TokenUsage | undefined {
  const fresh = numberMember(timings, 'prompt_n')
  const output = numberMember(timings, 'predicted_n')
  if (fresh === undefined || output === undefined) return undefined
  const cached = numberMember(timings, 'cache_n')
  return { input: fresh + (cached ?? 0), output, cached }
}
