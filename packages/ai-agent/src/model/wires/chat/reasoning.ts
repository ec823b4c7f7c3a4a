/**
 * Reasoning that comes beside the text, under any of its names: what is shown of it, and what goes
 * back to the provider.
 */
import { type JsonObject, isObject, member, textMember } from '../../json.ts'
import type { Profile } from '../../profiles.ts'

/**
 * Members with reasoning as text. Some providers send the same under two names; the first of a
 * message counts.
 */
const TEXT_FIELDS = [
  'reasoning_content',
  'reasoning',
  'reasoning_text',
  'thinking',
  'thinking_content',
  'thought',
]
/** Members with blocks and signatures. */
const BLOCK_FIELDS = ['reasoning_details', 'thinking_blocks']

/** Members that stand for it and are for the provider alone; the last one counts. */
const OPAQUE_FIELDS = ['reasoning_opaque']

const REASONING_FIELDS = new Set([...TEXT_FIELDS, ...BLOCK_FIELDS, ...OPAQUE_FIELDS])

export class Reasoning {
  readonly #increments: Increments
  readonly #texts = new Map<string, string>()
  readonly #blocks = new Map<string, JsonObject[]>()
  readonly #opaque = new Map<string, string>()
  /**
   * The source of the shown thought: some providers send it in a text and in blocks, not always in
   * one message.
   */
  #shownFrom: 'text' | 'blocks' | undefined

  constructor(profile: Profile) {
    this.#increments = new Increments(profile.cumulative)
  }

  /** One message or delta. Returns the thought to show. */
  push(message: JsonObject): string {
    let shown = ''
    const field = TEXT_FIELDS.find((name) => message[name] !== undefined && thoughtIn(message[name]) !== '')
    if (field !== undefined) {
      const fresh = this.#increments.take(thoughtIn(message[field]))
      this.#texts.set(field, (this.#texts.get(field) ?? '') + fresh)
      this.#shownFrom ??= 'text'
      if (this.#shownFrom === 'text') shown = fresh
    }
    for (const name of OPAQUE_FIELDS) {
      const opaque = textMember(message, name)
      if (opaque !== undefined) this.#opaque.set(name, opaque)
    }
    for (const name of BLOCK_FIELDS) {
      const pieces = message[name]
      if (!Array.isArray(pieces)) continue
      const blocks = this.#blocks.get(name) ?? []
      this.#blocks.set(name, blocks)
      for (const piece of pieces.filter(isObject)) {
        const text = blockText(piece)
        if (text !== '') this.#shownFrom ??= 'blocks'
        if (this.#shownFrom === 'blocks') shown += text
        addPiece(blocks, piece)
      }
    }
    return shown
  }

  /** The held-back rest. */
  end(): string {
    const rest = this.#increments.end()
    const [field] = this.#texts.keys()
    if (rest !== '' && field !== undefined) this.#texts.set(field, (this.#texts.get(field) ?? '') + rest)
    return this.#shownFrom === 'text' ? rest : ''
  }

  /** Members stored with the message, under the names under which they came. */
  replay(profile: Profile, withCalls: boolean): JsonObject {
    const all = Object.fromEntries([...this.#texts, ...this.#blocks, ...this.#opaque])
    return reasoningToSend(all, profile, withCalls)
  }
}

/**
 * Reasoning among the members stored with a message that this provider accepts now; others stay.
 */
export function reasoningToSend(stored: JsonObject, profile: Profile, withCalls: boolean): JsonObject {
  const { when, fields } = profile.reasoning
  const wanted = when === 'always' || (when === 'with_calls' && withCalls)
  return Object.fromEntries(
    Object.entries(stored).filter(
      ([name, value]) =>
        !REASONING_FIELDS.has(name) || (wanted && value !== '' && (fields?.includes(name) ?? true)),
    ),
  )
}

/** A text, or a text in a part or in a list of parts. */
function thoughtIn(value: unknown): string {
  if (typeof value === 'string') return value
  if (Array.isArray(value)) return value.map(thoughtIn).join('')
  return textMember(value, 'text') ?? textMember(value, 'content') ?? ''
}

function blockText(block: JsonObject): string {
  return textMember(block, 'text') ?? textMember(block, 'summary') ?? textMember(block, 'thinking') ?? ''
}

const GROWING = new Set(['text', 'summary', 'data', 'thinking'])

/** Blocks are streamed in pieces; a piece of the block that came last is joined to it. */
function addPiece(blocks: JsonObject[], piece: JsonObject): void {
  const last = blocks.at(-1)
  const same = last !== undefined && last['type'] === piece['type'] && last['index'] === piece['index']
  // Without an index only a signature marks the end of a block.
  const open = same && (last['index'] !== undefined || textMember(last, 'signature') === undefined)
  if (!open) {
    blocks.push({ ...piece })
    return
  }
  for (const [name, value] of Object.entries(piece)) {
    const old = member(last, name)
    if (GROWING.has(name) && typeof old === 'string' && typeof value === 'string') last[name] = old + value
    else if (value !== null && value !== undefined && value !== '') last[name] = value
  }
}

/** A repetition of at least so many characters is no chance. */
const CERTAIN = 8

/**
 * One text that grows. An ordinary stream is distinguished from a cumulative one by its first
 * deltas; what is in doubt is held.
 */
export class Increments {
  #kind: 'ordinary' | 'cumulative' | 'in doubt'
  /** The last delta in full, while the stream may be cumulative. */
  #said = ''
  #shown = 0
  #held = ''

  constructor(mayRepeat: boolean) {
    this.#kind = mayRepeat ? 'in doubt' : 'ordinary'
  }

  /** The new part of `delta`, as far as it is certain. */
  take(delta: string): string {
    if (this.#kind === 'ordinary' || delta === '') return delta
    if (!delta.startsWith(this.#said)) return this.#ordinary(delta)
    const first = this.#said === ''
    if (this.#said.length >= CERTAIN) this.#kind = 'cumulative'
    this.#said = delta
    if (this.#kind === 'cumulative' || first) return this.#fresh()
    this.#held += delta
    return ''
  }

  /** The stream is over: a text in doubt is taken as the profile says. */
  end(): string {
    return this.#kind === 'in doubt' ? this.#fresh() : ''
  }

  #fresh(): string {
    const fresh = this.#said.slice(this.#shown)
    this.#shown = this.#said.length
    this.#held = ''
    return fresh
  }

  #ordinary(delta: string): string {
    const text = this.#kind === 'cumulative' ? delta : this.#held + delta
    this.#kind = 'ordinary'
    this.#held = ''
    return text
  }
}
