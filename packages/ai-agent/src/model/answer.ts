/** A whole answer, put together from Chat Completions chunks (or from one whole completion). */
import type { TokenUsage } from '@sandlot/shared/events'
import { CallAssembler } from './assembler.ts'
import { isObject, member, numberMember, textMember } from './json.ts'
import type { JsonObject } from './json.ts'
import type { ModelAnswer, ModelChunk } from './model.ts'

/** Native words → ours. Anything else is `unknown`: calls decide, not the word. */
const FINISH_WORDS: Record<string, ModelAnswer['finish']> = {
  stop: 'stop',
  eos: 'stop',
  eos_token: 'stop',
  end_turn: 'stop',
  stop_sequence: 'stop',
  length: 'length',
  max_tokens: 'length',
  model_length: 'length',
  max_output_tokens: 'length',
  tool_calls: 'tool_calls',
  tool_call: 'tool_calls',
  tool_use: 'tool_calls',
  function_call: 'tool_calls',
  content_filter: 'content_filter',
  content_filtered: 'content_filter',
  safety: 'content_filter',
  recitation: 'content_filter',
  prohibited_content: 'content_filter',
  refusal: 'content_filter',
  sensitive: 'content_filter',
}

export class AnswerAssembler {
  #text = ''
  #thought = ''
  readonly #calls = new CallAssembler()
  #finish: ModelAnswer['finish'] | undefined
  #usage: TokenUsage = {}
  readonly #reasoning: { field: string; text: string }[] = []
  #reasoningDetails: JsonObject[] = []
  #extraContent: unknown

  /** The provider has said how the answer ended. Usage may still follow. */
  get finished(): boolean {
    return this.#finish !== undefined
  }

  /** Add one parsed chunk. Returns what may be shown. Whatever it does not know is ignored. */
  push(chunk: unknown): ModelChunk[] {
    const choices = member(chunk, 'choices')
    // Several choices were never asked for: the first is the answer.
    const choice = Array.isArray(choices)
      ? choices.find((each) => (numberMember(each, 'index') ?? 0) === 0)
      : undefined
    this.#readUsage(member(member(chunk, 'x_groq'), 'usage'))
    this.#readUsage(member(choice, 'usage'))
    this.#readUsage(member(chunk, 'usage'))
    if (choice === undefined) return []

    const delta = member(choice, 'delta')
    const message = member(choice, 'message')
    const shown: ModelChunk[] = []
    if (isObject(delta)) this.#readMessage(delta, shown)
    // A whole message is the answer where nothing was streamed, and a repetition where something was.
    if (isObject(message)) this.#readWholeMessage(message, shown)
    const word = textMember(choice, 'finish_reason')
    if (word !== undefined) this.#finish = FINISH_WORDS[word.toLowerCase()] ?? 'unknown'
    return shown
  }

  /** The answer as it stands. */
  finish(): ModelAnswer {
    const finish = this.#finish ?? 'unknown'
    const calls = this.#calls.finish(finish === 'length')
    const replay = this.#replay(calls.length > 0)
    return {
      text: this.#text,
      thought: this.#thought,
      calls,
      finish,
      usage: this.#usage,
      ...(Object.keys(replay).length === 0 ? {} : { replay }),
    }
  }

  #readWholeMessage(message: JsonObject, shown: ModelChunk[]): void {
    const spoken = this.#text !== '' || this.#thought !== ''
    const { tool_calls, function_call } = message
    this.#readMessage(spoken ? { tool_calls, function_call } : message, shown)
  }

  #readMessage(message: JsonObject, shown: ModelChunk[]): void {
    this.#readReasoning(message, shown)
    this.#readContent(message['content'], shown)
    this.#readContent(message['refusal'], shown)
    if (message['extra_content'] !== undefined && message['extra_content'] !== null) {
      this.#extraContent = message['extra_content']
    }
    const calls = Array.isArray(message['tool_calls']) ? message['tool_calls'] : []
    // Before there were several: `function_call`.
    if (isObject(message['function_call'])) calls.push({ index: 0, function: message['function_call'] })
    for (const element of calls) {
      const name = this.#calls.push(element)
      if (name !== undefined) shown.push({ type: 'call_started', name })
    }
  }

  #readContent(content: unknown, shown: ModelChunk[]): void {
    if (typeof content === 'string') this.#say(content, shown)
    if (!Array.isArray(content)) return
    for (const part of content) {
      if (typeof part === 'string') this.#say(part, shown)
      else if (member(part, 'type') === 'thinking')
        this.#think('', joinedText(member(part, 'thinking')), shown)
      else this.#say(joinedText(member(part, 'text')), shown)
    }
  }

  #readReasoning(message: JsonObject, shown: ModelChunk[]): void {
    // Some send the same reasoning under both names.
    const field = ['reasoning_content', 'reasoning'].find((name) => textMember(message, name) !== undefined)
    if (field !== undefined) this.#think(field, textMember(message, field) ?? '', shown)
    const details = message['reasoning_details']
    if (Array.isArray(details))
      this.#reasoningDetails = mergeDetails(this.#reasoningDetails, details.filter(isObject))
  }

  #say(text: string, shown: ModelChunk[]): void {
    if (text === '') return
    this.#text += text
    shown.push({ type: 'text', text })
  }

  #think(field: string, text: string, shown: ModelChunk[]): void {
    if (text === '') return
    this.#thought += text
    shown.push({ type: 'thought', text })
    if (field === '') return
    const known = this.#reasoning.find((each) => each.field === field)
    if (known === undefined) this.#reasoning.push({ field, text })
    else known.text += text
  }

  #readUsage(usage: unknown): void {
    if (!isObject(usage)) return
    const input = numberMember(usage, 'prompt_tokens') ?? numberMember(usage, 'input_tokens')
    const output = numberMember(usage, 'completion_tokens') ?? numberMember(usage, 'output_tokens')
    const cached =
      numberMember(usage['prompt_tokens_details'], 'cached_tokens') ??
      numberMember(usage, 'prompt_cache_hit_tokens') ??
      numberMember(usage, 'cached_tokens')
    const reasoning = numberMember(usage['completion_tokens_details'], 'reasoning_tokens')
    if (input === undefined && output === undefined) return
    this.#usage = {
      ...(input === undefined ? {} : { input }),
      ...(output === undefined ? {} : { output }),
      ...(cached === undefined ? {} : { cached }),
      ...(reasoning === undefined ? {} : { reasoning }),
    }
  }

  /**
   * What goes back with the message, under the names under which it came. Reasoning only with calls: that is where
   * providers require it, and some refuse it elsewhere.
   */
  #replay(withCalls: boolean): JsonObject {
    const replay: JsonObject = {}
    if (withCalls) {
      for (const { field, text } of this.#reasoning) replay[field] = text
      if (this.#reasoningDetails.length > 0) replay['reasoning_details'] = this.#reasoningDetails
    }
    if (this.#extraContent !== undefined) replay['extra_content'] = this.#extraContent
    return replay
  }
}

/** A text, or the texts of a list of parts. */
function joinedText(value: unknown): string {
  if (typeof value === 'string') return value
  return Array.isArray(value) ? value.map((part) => textMember(part, 'text') ?? '').join('') : ''
}

/** OpenRouter streams its reasoning blocks in pieces; a piece of the block that came last is joined to it. */
function mergeDetails(before: JsonObject[], pieces: JsonObject[]): JsonObject[] {
  const merged = [...before]
  for (const piece of pieces) {
    const last = merged.at(-1)
    const same = last !== undefined && last['type'] === piece['type'] && last['index'] === piece['index']
    if (!same || last['index'] === undefined) {
      merged.push(piece)
      continue
    }
    const joined: JsonObject = { ...last }
    for (const [name, value] of Object.entries(piece)) {
      const old = joined[name]
      const grows = (name === 'text' || name === 'summary' || name === 'data') && typeof old === 'string'
      if (grows && typeof value === 'string') joined[name] = old + value
      else if (value !== null && value !== undefined) joined[name] = value
    }
    merged[merged.length - 1] = joined
  }
  return merged
}
