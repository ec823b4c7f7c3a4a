/**
 * Calls, put together from deltas. Which delta belongs to which call: its id where given, else its
 * index, else "the last call, unless its arguments are complete and a new name comes". Empty never
 * overwrites.
 */
import { ARGUMENTS_MEMBERS, ArgumentsBuffer } from '../../arguments.ts'
import { cleanName } from '../../call-names.ts'
import { isObject, member, numberMember, textMember } from '../../json.ts'
import { withoutRepetitions } from '../../normalize-answer.ts'
import type { ModelCall } from '../../model.ts'

interface PartialCall {
  id: string | undefined
  index: number | undefined
  name: string
  args: ArgumentsBuffer
  /**
   * The name came again after the arguments were complete: if more arguments come, they are another
   * call's.
   */
  named: boolean
  extra: Record<string, unknown>
}

/** A call as far as it has come. `place`: which one, from 0. */
export interface ShownCall {
  place: number
  name: string
  args: string
}

interface Delta {
  id: string | undefined
  index: number | undefined
  name: string | undefined
  args: unknown
  extra: Record<string, unknown>
}

/**
 * Members that a provider puts on a call and requires back with it: Gemini's signatures, straight
 * or through a proxy.
 */
const RETAINED_MEMBERS = [
  'extra_content',
  'provider_specific_fields',
  'thought_signature',
  'thoughtSignature',
]

export class CallAssembler {
  #calls: PartialCall[] = []
  /** The calls that the last delta with several elements named. */
  #row: readonly PartialCall[] = []

  /** Calls have come, and the arguments of each are whole. */
  get complete(): boolean {
    return this.#calls.length > 0 && this.#calls.every((call) => call.args.complete)
  }

  /**
   * The elements of one delta's `tool_calls`. Returns the calls that have just become known, or
   * longer, for the screen.
   */
  push(elements: readonly unknown[]): ShownCall[] {
    const named: PartialCall[] = []
    const several = elements.length > 1
    const shown = elements.flatMap((element, place) => {
      // Elements that say nothing of themselves are known by their places.
      const placed = several ? this.#row[place] : undefined
      const call = this.#push(element, named, placed)
      return call === undefined ? [] : this.#show(call)
    })
    if (several && named.length > 0) this.#row = named
    return shown
  }

  /**
   * Whole calls: each element is one, whatever ids and indexes say, and what came before was only a
   * part of them.
   */
  replace(elements: readonly unknown[]): ShownCall[] {
    this.#calls = []
    return elements.filter(isObject).flatMap((element) => {
      const delta = readDelta(element)
      const call = newCall(delta, delta.name ?? '')
      this.#calls.push(call)
      call.args.push(delta.args)
      return this.#show(call)
    })
  }

  /** Nothing when it is not known yet, or hardly longer than when it was shown last. */
  #show(call: PartialCall): ShownCall[] {
    const args = call.name === '' ? undefined : call.args.takeGrown()
    return args === undefined ? [] : [{ place: this.#calls.indexOf(call), name: call.name, args }]
  }

  /** `named`: calls that this delta has named already; two of its elements are never one call. */
  #push(element: unknown, named: PartialCall[], placed: PartialCall | undefined): PartialCall | undefined {
    if (!isObject(element)) return undefined
    const delta = readDelta(element)
    const nameless = delta.id === undefined && delta.index === undefined && delta.name === undefined
    const call = (nameless ? placed : undefined) ?? this.#callOf(delta, named)
    if (delta.name !== undefined) named.push(call)
    call.id ??= delta.id
    call.index ??= delta.index
    Object.assign(call.extra, delta.extra)
    if (hasArguments(delta.args) && call.args.repeats(delta.args)) return undefined
    this.#addName(call, delta.name)
    call.args.push(delta.args)
    return call
  }

  /**
   * The calls in the order of their indices, where they have some, each once. `cut`: the answer was
   * cut by its length, so the call that came last may be incomplete.
   */
  finish(cut: boolean): ModelCall[] {
    const real = this.#calls.filter((call) => call.name !== '' || call.args.begun)
    const taken = new Set(real.map((call) => call.id))
    const read = real.map((call, position): ModelCall => ({
      id: call.id ?? ownId(position + 1, taken),
      name: call.name,
      ...call.args.read(cut && position === real.length - 1),
      ...(Object.keys(call.extra).length === 0 ? {} : { replay: call.extra }),
    }))
    return withoutRepetitions(byIndex(read, (position) => real[position]?.index))
  }

  #callOf(delta: Delta, named: readonly PartialCall[]): PartialCall {
    const known = this.#find(delta)
    const sibling = known !== undefined && delta.name !== undefined && named.includes(known)
    const another = sibling && !(delta.id !== undefined && delta.id === known.id && delta.name === known.name)
    if (known !== undefined && !another && !this.#beginsAnother(known, delta)) return known
    const call = newCall(delta, known?.named === true && delta.name === undefined ? known.name : '')
    this.#calls.push(call)
    return call
  }

  #find(delta: Delta): PartialCall | undefined {
    const { id, index, name } = delta
    const last = this.#calls.at(-1)
    const byIndex = index === undefined ? undefined : this.#calls.findLast((call) => call.index === index)
    if (id !== undefined) {
      const byId = this.#calls.findLast(
        (call) => call.id === id && (index === undefined || call.index === index),
      )
      if (byId !== undefined) return byId
      const sameId = this.#calls.findLast((call) => call.id === id)
      // The index counts something else, or two calls share an id; `beginsAnother` decides.
      if (sameId !== undefined) return sameId
      const more = name === undefined || (last !== undefined && goesOn(last, delta))
      const here = index === undefined && more ? last : byIndex
      // An id that comes late belongs to the call at its index; one that changes in mid-arguments
      // means nothing.
      if (here === undefined || here.id === undefined) return here
      return goesOn(here, delta) ? here : undefined
    }
    if (index !== undefined) {
      // An index that grows with every delta: what has no name of its own is more of the last call.
      const nameless = byIndex === undefined && name === undefined && last?.args.complete === false
      return nameless ? last : byIndex
    }
    // Without id and index a name is a new call once the last one has its arguments.
    return name !== undefined && last !== undefined && last.args.begun && last.name !== name
      ? last.name === ''
        ? last
        : undefined
      : last
  }

  /** True when this delta cannot be more of `call`. */
  #beginsAnother(call: PartialCall, delta: Delta): boolean {
    const { id, name, args, index } = delta
    const elsewhere = index !== undefined && call.index !== undefined && index !== call.index
    // One id under an index that grows with every delta is one call, as long as its arguments go
    // on.
    if (name !== undefined && elsewhere) return !goesOn(call, delta)
    if (!call.args.complete) return false
    // An empty object stood for arguments that were still to come.
    if (id !== undefined && id === call.id && name === call.name && call.args.empty) return false
    const renamed = name !== undefined && call.name !== '' && name !== call.name
    if (!hasArguments(args) || call.args.repeats(args)) return renamed
    // Text that begins like no value is a remark after this call's arguments.
    const begins = typeof args !== 'string' || /^\s*[{["]/.test(args)
    return renamed || ((name !== undefined || call.named) && begins)
  }

  #addName(call: PartialCall, name: string | undefined): void {
    if (name === undefined) return
    if (call.args.complete) call.named = true
    if (name === call.name || (call.args.begun && call.name !== '')) return
    // Cumulative (`read`, `read_file`) or in fragments (`read_`, `file`).
    call.name = call.name !== '' && name.startsWith(call.name) ? name : call.name + name
  }
}

/**
 * Those with an index change places with each other until they are in its order; those without stay
 * where they are.
 */
function byIndex<T>(items: readonly T[], indexOf: (position: number) => number | undefined): T[] {
  const indexed = [...items.keys()].flatMap((position) => {
    const index = indexOf(position)
    return index === undefined ? [] : [{ position, index }]
  })
  const sorted = indexed.toSorted((a, b) => a.index - b.index)
  const from = new Map(indexed.map(({ position }, place) => [position, sorted[place]?.position]))
  return items.map((item, position) => items[from.get(position) ?? position] ?? item)
}

function newCall({ id, index, extra }: Delta, name: string): PartialCall {
  return {
    id,
    index,
    name,
    args: new ArgumentsBuffer(),
    named: false,
    extra: { ...extra },
  }
}

/**
 * True for a delta with an id of its own that is still plainly more of `call`: some make a new id
 * for every delta.
 */
function goesOn(call: PartialCall, { name, args }: Delta): boolean {
  if (call.args.complete) return false
  if (name === undefined) return true
  const more = typeof args === 'string' && args !== '' && !args.trimStart().startsWith('{')
  return name === call.name && call.args.begun && more
}

function ownId(number: number, taken: ReadonlySet<string | undefined>): string {
  const id = `call_${number}`
  return taken.has(id) ? `${id}_own` : id
}

function readDelta(element: Record<string, unknown>): Delta {
  // Some send the function's members flat.
  const body = isObject(element['function']) ? element['function'] : element
  return {
    id: textMember(element, 'id') ?? numberMember(element, 'id')?.toString(),
    index: numberMember(element, 'index'),
    name: cleanName(textMember(body, 'name')),
    args: argumentsIn(body),
    extra: Object.fromEntries(
      RETAINED_MEMBERS.flatMap((name) =>
        element[name] === undefined || element[name] === null ? [] : [[name, element[name]]],
      ),
    ),
  }
}

/** Those that stand beside a null under another name, before the null. */
function argumentsIn(body: unknown): unknown {
  const all = ARGUMENTS_MEMBERS.map((name) => member(body, name)).filter((args) => args !== undefined)
  return all.find((args) => args !== null) ?? all[0]
}

function hasArguments(args: unknown): boolean {
  return typeof args === 'string' ? args.trim() !== '' : args !== undefined && args !== null
}
