/** Content blocks of a Messages answer, as they grow. */
import { ArgumentsBuffer } from '../../arguments.ts'
import { cleanName } from '../../call-names.ts'
import { type JsonObject, isObject, textMember } from '../../json.ts'
import type { ReplayItem } from '../../model.ts'

/** A delta: the type of the block that it is for, and what it adds. */
interface Piece {
  type: string
  content: JsonObject
}

/** Types of deltas, by what they bring, and the blocks that they are for. */
const PIECES: Readonly<Record<string, string>> = {
  text: 'text',
  citation: 'text',
  thinking: 'thinking',
  signature: 'thinking',
  partial_json: 'tool_use',
}

/** Also of a delta without its type. */
export function pieceOf(delta: JsonObject): Piece {
  const { type: _, ...content } = delta
  const name = Object.keys(PIECES).find((one) => content[one] !== undefined)
  return { type: PIECES[name ?? ''] ?? '', content }
}

/** The block that `content` begins. */
export function blockOf(content: JsonObject): Block {
  return new Block(textMember(content, 'type') ?? '', content)
}

export class Block {
  readonly type: string
  /** The block as it began, with what came for it; without its text, which the answer has. */
  readonly raw: JsonObject
  /** UTF-16 units of the answer's text. */
  chars = 0
  name: string
  readonly args = new ArgumentsBuffer()
  /** No thought of it was shown. */
  firstThought = true
  /** Nothing has come for it yet, though something should. */
  empty: boolean

  constructor(type: string, content: JsonObject) {
    this.type = type
    this.raw = { ...content }
    if (type === 'thinking') this.raw['thinking'] = ''
    this.name = cleanName(textMember(content, 'name')) ?? ''
    this.empty = GROWING.has(type)
  }

  /** True if this piece may be more of it: calls of the provider's own tools have arguments too. */
  takes({ type }: Piece): boolean {
    if (type === 'tool_use') return this.type.endsWith('tool_use')
    return type === this.type || (type === '' && !GROWING.has(this.type))
  }

  /** Adds a piece, or what it began with. Returns what of it is new in the answer. */
  add({ text, thinking, signature, citation, input, partial_json, ...rest }: JsonObject): {
    text: string
    thought: string
  } {
    const { raw } = this
    if ([text, thinking, signature, partial_json].some((one) => typeof one === 'string' && one !== ''))
      this.empty = false
    for (const piece of [input, partial_json]) this.#addArguments(piece)
    if (!GROWING.has(this.type)) grow(raw, rest)
    if (isObject(citation)) raw['citations'] = [...listOf(raw['citations']), citation]
    if (typeof signature === 'string' && signature !== '') raw['signature'] = signature
    const thought = this.type === 'thinking' && typeof thinking === 'string' ? thinking : ''
    if (thought !== '') raw['thinking'] = `${textMember(raw, 'thinking') ?? ''}${thought}`
    return { text: this.type === 'text' && typeof text === 'string' ? text : '', thought }
  }

  #addArguments(piece: unknown): void {
    if (piece === undefined || piece === null || (isObject(piece) && Object.keys(piece).length === 0)) return
    if (!this.args.repeats(piece)) this.args.push(piece)
  }
}

/** Types that come in pieces; blocks of all others are kept as they are. */
const GROWING = new Set(['text', 'thinking', 'tool_use'])

/** Adds to the members of a block that we do not know: texts go on, all else is replaced. */
function grow(raw: JsonObject, pieces: JsonObject): void {
  for (const [name, value] of Object.entries(pieces)) {
    const known = raw[name]
    if (known === value) continue
    raw[name] = typeof known === 'string' && typeof value === 'string' ? known + value : value
  }
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : []
}

/**
 * Items that go back with the answer for a block. `last`: it may have been cut. `signed`: the
 * provider signs its thoughts in this answer.
 */
export function itemToReplay(block: Block, last: boolean, signed: boolean): ReplayItem[] {
  const { type, raw, chars, args } = block
  if (type === 'text') {
    const citations = listOf(raw['citations'])
    return chars === 0 ? [] : [{ chars, ...(citations.length === 0 ? {} : { raw: { citations } }) }]
  }
  if (type === 'thinking') {
    const unsigned = textMember(raw, 'thinking') !== undefined && !(last || signed)
    return unsigned || textMember(raw, 'signature') !== undefined ? [{ raw }] : []
  }
  // An own call of the provider has its result after it.
  if (type === '' || (last && type === 'server_tool_use')) return []
  return [{ raw: args.begun ? { ...raw, input: args.read(false).args } : raw }]
}
