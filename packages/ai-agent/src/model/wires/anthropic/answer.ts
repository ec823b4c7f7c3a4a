/** A whole answer, put together from the events of Messages (or from one whole message). */
import type { TokenUsage } from '@sandlot/shared/chat/event-meta'
import type { SetIn } from '@sandlot/shared/chat/reasons'
import { foreignAnswer, modelError } from '../../errors.ts'
import { finishReason } from '../../finish-words.ts'
import { type JsonObject, isObject, member, numberMember, textMember } from '../../json.ts'
import type { ModelAnswer, ModelCall, ModelChunk, ReplayItem } from '../../model.ts'
import { withoutRepetitions } from '../../normalize-answer.ts'
import type { AnswerReader } from '../wire.ts'
import { type Block, blockOf, itemToReplay, pieceOf } from './blocks.ts'

/** Feed parsed events; pieces to show go to `onPiece` at once. */
export class MessageReader implements AnswerReader {
  readonly #onPiece: (piece: ModelChunk) => void
  /** In the order in which they began. */
  readonly #blocks: Block[] = []
  /** The block that began last with each index. */
  readonly #byIndex = new Map<number, Block>()
  #text = ''
  #thought = ''
  #finish: ModelAnswer['finish'] | undefined
  #wentOn = false
  over = false
  readonly #usage: JsonObject = {}

  constructor(onPiece: (piece: ModelChunk) => void) {
    this.#onPiece = onPiece
  }

  get finished(): boolean {
    return this.#finish !== undefined
  }

  get quiet(): boolean {
    return this.finished && !this.#wentOn
  }

  isPiece(chunk: unknown): boolean {
    const delta = member(chunk, 'delta')
    if (!isObject(delta) || member(chunk, 'type') !== 'content_block_delta') return false
    return member(chunk, 'error') === undefined && !isObject(delta['partial_json'])
  }

  checkWhole(body: unknown, setIn: SetIn | undefined): void {
    if (Array.isArray(member(body, 'content')) || member(body, 'type') === 'message') return
    throw foreignAnswer('JSON that is no message of the Messages API', setIn, '')
  }

  push(chunk: JsonObject, event: string): void {
    const index = numberMember(chunk, 'index')
    switch (textMember(chunk, 'type') ?? event) {
      case 'message_start':
        return this.#readMessage(chunk['message'])
      case 'content_block_start':
        return this.#start(index, chunk['content_block'])
      case 'content_block_delta':
        return this.#delta(index, chunk['delta'])
      case 'message_delta':
        this.#count(chunk['usage'])
        return this.#end(textMember(chunk['delta'], 'stop_reason') ?? textMember(chunk, 'stop_reason'))
      case 'message_stop':
        // Before any reason for the end it came too early.
        this.over = this.finished
        this.#finish ??= 'unknown'
        return
      default:
        // A whole message, also without its type.
        if (Array.isArray(chunk['content'])) this.#readMessage(chunk)
    }
  }

  end(): void {
    // Nothing is held back.
  }

  finish(): ModelAnswer {
    const finish = this.#finish ?? 'unknown'
    const calls: ModelCall[] = []
    const items: ReplayItem[] = []
    const signed = this.#blocks.some(({ raw }) => textMember(raw, 'signature') !== undefined)
    const blocks = this.#ordered()
    for (const block of blocks) {
      const last = block === blocks.at(-1)
      if (block.type === 'tool_use') {
        const { length } = calls
        const call = readCall(block, length, finish === 'length' && last)
        // A call that is repeated is meant once.
        if (withoutRepetitions([...calls, call]).length > length) {
          calls.push(call)
          items.push({ call: length })
        }
      } else {
        items.push(...itemToReplay(block, last, signed))
      }
    }
    return {
      text: this.#text,
      thought: this.#thought,
      calls,
      finish,
      usage: usageOf(this.#usage),
      ...(isPlain(items) ? {} : { replay: items }),
    }
  }

  /** In the order of their indices, where these differ and texts are in it. */
  #ordered(): readonly Block[] {
    const byIndex = [...this.#byIndex].toSorted(([a], [b]) => a - b).map(([, block]) => block)
    const texts = (blocks: readonly Block[]): Block[] => blocks.filter(({ type }) => type === 'text')
    const [shown, numbered] = [texts(this.#blocks), texts(byIndex)]
    const fits = byIndex.length === this.#blocks.length && shown.every((text, at) => text === numbered[at])
    return fits ? byIndex : this.#blocks
  }

  /** The message as it begins, or a whole one; one that repeats what was streamed only counts. */
  #readMessage(message: unknown): void {
    this.#count(member(message, 'usage'))
    const content = member(message, 'content')
    if (Array.isArray(content) && this.#blocks.length === 0)
      for (const [index, block] of content.entries()) this.#start(index, block)
    this.#end(textMember(message, 'stop_reason'))
  }

  #end(stopReason: string | undefined): void {
    const finish = stopReason === undefined ? undefined : finishReason(stopReason)
    if (finish === undefined) return
    const silent = this.#text === '' && this.#blocks.every(({ type }) => type !== 'tool_use')
    if (silent && stopReason === 'model_context_window_exceeded')
      throw modelError(
        'context_overflow',
        'The conversation fills the context window of the model and leaves no room for an answer.',
      )
    this.#finish = finish
    this.#wentOn = false
  }

  /** Counts are those so far; no zero replaces a count. */
  #count(usage: unknown): void {
    if (!isObject(usage)) return
    for (const [name, count] of Object.entries(usage))
      if (count !== null && (count !== 0 || this.#usage[name] === undefined)) this.#usage[name] = count
  }

  #start(index: number | undefined, content: unknown): void {
    if (!isObject(content)) return
    const open = index === undefined ? undefined : this.#byIndex.get(index)
    // The same beginning again.
    if (open?.empty === true && open.type === content['type'] && open.raw['id'] === content['id']) return
    this.#show(this.#open(index, content), content)
  }

  #open(index: number | undefined, content: JsonObject): Block {
    const block = blockOf(content)
    this.#blocks.push(block)
    if (index !== undefined) this.#byIndex.set(index, block)
    return block
  }

  #delta(index: number | undefined, delta: unknown): void {
    if (!isObject(delta)) return
    const named = index === undefined ? this.#blocks.at(-1) : this.#byIndex.get(index)
    const piece = pieceOf(delta)
    const block = named?.takes(piece) === true ? named : this.#blockFor(index, piece)
    this.#show(block, piece.content)
  }

  /** A block for a piece whose own was never begun: of several texts, the last one continues. */
  #blockFor(index: number | undefined, piece: ReturnType<typeof pieceOf>): Block {
    const last = this.#blocks.at(-1)
    const begun = index !== undefined && this.#byIndex.has(index)
    const goesOn =
      last !== undefined && (!last.args.complete || last.args.repeats(piece.content['partial_json']))
    const more = goesOn && last.takes(piece) && !begun
    return more ? last : this.#open(index, { type: piece.type })
  }

  #show(block: Block, content: JsonObject): void {
    this.#wentOn ||= this.finished
    const { text, thought } = block.add(content)
    if (text !== '') {
      this.#text += text
      // An item knows only the length of its text: what comes late counts to the last one.
      const to = this.#blocks.findLast(({ type }) => type === 'text') ?? block
      to.chars += text.length
      this.#onPiece({ type: 'text', text })
    }
    if (thought !== '') {
      const apart = this.#thought !== '' && block.firstThought ? '\n\n' : ''
      block.firstThought = false
      this.#thought += apart + thought
      this.#onPiece({ type: 'thought', text: apart + thought })
    }
    if (block.type !== 'tool_use') return
    const args = block.name === '' ? undefined : block.args.takeGrown()
    if (args === undefined) return
    const place = this.#blocks.filter(({ type }) => type === 'tool_use').indexOf(block)
    this.#onPiece({ type: 'call', place, name: block.name, args })
  }
}

function readCall({ raw, name, args }: Block, place: number, cut: boolean): ModelCall {
  return { id: textMember(raw, 'id') ?? `call_${place + 1}`, name, ...args.read(cut) }
}

/** Text and then calls, which is how an answer without items goes back. */
function isPlain(items: readonly ReplayItem[]): boolean {
  const texts = items.findLastIndex(({ chars }) => chars !== undefined)
  const calls = items.findIndex(({ call }) => call !== undefined)
  return items.every(({ raw }) => raw === undefined) && (calls === -1 || texts < calls)
}

/** Reads and writes of the cache stand beside the input here, and are part of it in ours. */
function usageOf(usage: JsonObject): TokenUsage {
  const cached = numberMember(usage, 'cache_read_input_tokens')
  const written = numberMember(usage, 'cache_creation_input_tokens')
  const hour = numberMember(usage['cache_creation'], 'ephemeral_1h_input_tokens')
  const input = numberMember(usage, 'input_tokens')
  const details = usage['output_tokens_details']
  const counts: TokenUsage = {
    input:
      input === undefined && cached === undefined ? undefined : (input ?? 0) + (cached ?? 0) + (written ?? 0),
    output: numberMember(usage, 'output_tokens'),
    cached,
    cacheWritten: written,
    cacheWrittenHour: hour === 0 ? undefined : hour,
    reasoning: numberMember(details, 'thinking_tokens') ?? numberMember(details, 'reasoning_tokens'),
  }
  return Object.fromEntries(Object.entries(counts).filter(([, count]) => count !== undefined))
}
