/**
 * The output items of a response as events report them, and which item an event speaks of.
 *
 * Proxies give all items of a response one `output_index`, or an item another id in every event, or
 * neither: an id and an index that agree count first, then the id, the index, and the item of the
 * kind that came last.
 */
import { ArgumentsBuffer } from '../../arguments.ts'
import { cleanName } from '../../call-names.ts'
import { type JsonObject, isObject, member, numberMember, textMember } from '../../json.ts'
import type { ModelCall } from '../../model.ts'

/** Stands between the texts of two messages of one answer, and between two summaries. */
export const BETWEEN_MESSAGES = '\n\n'

type ItemKind = 'message' | 'function_call' | 'reasoning' | 'other'

/** The place that an event or an item names for itself. */
interface Place {
  id: string | undefined
  index: number | undefined
}

export class OutputItem {
  readonly kind: ItemKind
  readonly id: string | undefined
  readonly index: number | undefined
  /** The provider has sent the item itself, not only a piece of it. */
  announced = false
  /** The provider has said that it is whole. */
  done = false
  /** The members of the item that are not empty, of all times that it came. */
  raw: JsonObject = {}

  /** Text or thought that was handed out. */
  text = ''
  /** The part that grew last. */
  part: number | undefined
  /** The kind of thought that is shown: some send a summary and the thought itself. */
  source: 'summary' | 'content' | undefined
  /** Characters of the answer's text: of this item, and of the gap behind it. */
  chars = 0

  name: string | undefined
  callId: string | undefined
  /** Arguments from deltas. */
  readonly args = new ArgumentsBuffer()
  /** Arguments as the item had them when it began, and when it was whole. */
  #begun: unknown
  #whole: unknown

  constructor(kind: ItemKind, { id, index }: Place) {
    this.kind = kind
    this.id = id
    this.index = index
  }

  /** Takes the item itself. `done`: as it is in the end. */
  take(item: JsonObject, done: boolean): void {
    this.announced = true
    this.done ||= done
    const said = Object.entries(item).filter(([name, value]) => isSaid(value) || !(name in this.raw))
    this.raw = { ...this.raw, ...Object.fromEntries(said) }
    // Some nest them as Chat Completions does.
    const body = isObject(item['function']) ? item['function'] : item
    this.name = cleanName(textMember(body, 'name')) ?? this.name
    this.callId = textMember(item, 'call_id') ?? this.callId
    this.takeArguments(body['arguments'], done)
  }

  takeArguments(args: unknown, done: boolean): void {
    if (!isSaid(args)) return
    if (done) this.#whole = args
    else this.#begun = args
  }

  /**
   * The arguments to run: as they were in the end, unless only their pieces can be read. `cut`: the
   * answer was cut by its length in this call.
   */
  readArguments(cut: boolean): Pick<ModelCall, 'args' | 'invalid'> {
    const { args } = this
    const whole = bufferOf(this.#whole ?? (args.begun ? undefined : this.#begun))
    if (!args.begun) return whole.read(cut)
    if (!whole.begun || (whole.empty && !args.empty)) return args.read(cut)
    const read = whole.read(cut)
    if (read.invalid === undefined) return read
    const pieces = args.read(cut)
    return pieces.invalid === undefined ? pieces : read
  }
}

function bufferOf(whole: unknown): ArgumentsBuffer {
  const buffer = new ArgumentsBuffer()
  buffer.push(whole)
  return buffer
}

function isSaid(value: unknown): boolean {
  if (Array.isArray(value)) return value.length > 0
  return value !== undefined && value !== null && value !== ''
}

export class OutputItems {
  readonly #all: OutputItem[] = []
  /** The item of the last piece. */
  #grown: OutputItem | undefined

  /** In the order in which the provider numbers them, where it does, else as they came. */
  get ordered(): OutputItem[] {
    const indices = this.#all.map(({ index }) => index)
    const numbered = !indices.includes(undefined) && new Set(indices).size === indices.length
    return numbered ? this.#all.toSorted((a, b) => (a.index ?? 0) - (b.index ?? 0)) : [...this.#all]
  }

  /** The number of a call among the calls, from 0. */
  placeOf(call: OutputItem): number {
    return this.#all.filter(({ kind }) => kind === 'function_call').indexOf(call)
  }

  /** The item that a piece belongs to. */
  ofPiece(kind: ItemKind, event: JsonObject): OutputItem {
    const place = placeIn(event, event)
    const last = this.#grown
    if (last?.kind === kind && last.id === place.id && last.index === place.index) return last
    this.#grown = this.#find(kind, place, () => true) ?? this.#add(kind, place)
    return this.#grown
  }

  /** The item that an event brings as a whole. */
  ofItem(item: JsonObject, event: JsonObject, done: boolean): OutputItem {
    const kind = kindOf(item)
    const place = placeIn(item, event)
    const callId = textMember(item, 'call_id')
    const fits = (known: OutputItem): boolean =>
      callId === undefined || known.callId === undefined || known.callId === callId
    // An item that begins is a new one, unless pieces of it came before.
    const mayBe = (known: OutputItem): boolean => fits(known) && (done || !known.announced)
    return (
      this.#find(kind, place, mayBe) ??
      (done && callId !== undefined ? this.#all.find((known) => known.callId === callId) : undefined) ??
      this.#add(kind, place)
    )
  }

  /**
   * The items of a whole response. Those of a kind correspond in their order, calls by their ids
   * first.
   */
  ofResponse(output: readonly JsonObject[]): OutputItem[] {
    const left = [...this.#all]
    return output.map((item, index) => {
      const kind = kindOf(item)
      const callId = textMember(item, 'call_id')
      const same = (known: OutputItem): boolean => known.kind === kind
      const at = [
        left.findIndex((known) => same(known) && callId !== undefined && known.callId === callId),
        left.findIndex(
          (known) => same(known) && known.id !== undefined && known.id === textMember(item, 'id'),
        ),
        left.findIndex((known) => same(known) && (callId === undefined || known.callId === undefined)),
      ].find((place) => place !== -1)
      const [known] = at === undefined ? [] : left.splice(at, 1)
      return (
        known ??
        this.#add(kind, { id: textMember(item, 'id'), index: this.#all.length === index ? index : undefined })
      )
    })
  }

  #find(kind: ItemKind, { id, index }: Place, mayBe: (item: OutputItem) => boolean): OutputItem | undefined {
    const some = this.#all.filter((item) => item.kind === kind && mayBe(item))
    const byId = id === undefined ? [] : some.filter((item) => item.id === id)
    const byIndex = index === undefined ? [] : some.filter((item) => item.index === index)
    const both = byId.find((item) => byIndex.includes(item))
    const known = both ?? byId.at(-1) ?? byIndex.at(-1)
    if (known !== undefined) return known
    return id === undefined || index === undefined ? some.findLast(({ done }) => !done) : undefined
  }

  #add(kind: ItemKind, place: Place): OutputItem {
    const item = new OutputItem(kind, place)
    this.#all.push(item)
    return item
  }
}

function kindOf(item: JsonObject): ItemKind {
  const type = textMember(item, 'type') ?? (item['role'] === undefined ? '' : 'message')
  return type === 'message' || type === 'function_call' || type === 'reasoning' ? type : 'other'
}

function placeIn(item: JsonObject, event: JsonObject): Place {
  return {
    id: textMember(item === event ? undefined : item, 'id') ?? textMember(event, 'item_id'),
    index: numberMember(event, 'output_index'),
  }
}

/** The texts of a list of parts, or one text. */
export function textsIn(parts: unknown): string[] {
  if (typeof parts === 'string') return [parts]
  return Array.isArray(parts)
    ? parts.map((part) => textMember(part, 'text') ?? textMember(part, 'refusal') ?? '')
    : []
}

/** True if a part says that the model refuses. */
export function isRefusal(parts: unknown): boolean {
  return Array.isArray(parts) && parts.some((part) => member(part, 'type') === 'refusal')
}
