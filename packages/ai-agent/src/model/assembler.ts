/**
 * Calls, put together from deltas. Which delta belongs to which call: its id where given, else its index, else "the last
 * call, unless its arguments are complete and a new name comes". Empty never overwrites.
 */
import { ArgumentsBuffer } from './arguments.ts'
import { isObject, member, numberMember, textMember } from './json.ts'
import type { ModelCall } from './model.ts'

interface PartialCall {
  id: string | undefined
  index: number | undefined
  name: string
  args: ArgumentsBuffer
  /** The name came again after the arguments were complete: if more arguments come, they are another call's. */
  named: boolean
  extra: Record<string, unknown>
  announced: boolean
}

interface Delta {
  id: string | undefined
  index: number | undefined
  name: string | undefined
  args: unknown
  extra: Record<string, unknown>
}

/** Members of a call that we rebuild ourselves; everything else is the provider's and goes back to it. */
const OWN_MEMBERS = new Set(['id', 'index', 'type', 'function', 'name', 'arguments'])

export class CallAssembler {
  readonly #calls: PartialCall[] = []

  /** One element of `tool_calls`. Returns the name of a call that has just become known, for the screen. */
  push(element: unknown): string | undefined {
    if (!isObject(element)) return undefined
    const delta = readDelta(element)
    const call = this.#callOf(delta)
    call.id ??= delta.id
    call.index ??= delta.index
    Object.assign(call.extra, delta.extra)
    if (hasArguments(delta.args) && call.args.repeats(delta.args)) return undefined
    this.#addName(call, delta.name)
    call.args.push(delta.args)
    if (call.announced || call.name === '' || !call.args.begun) return undefined
    call.announced = true
    return call.name
  }

  /** `cut`: the answer was cut by its length, so the last call may be incomplete. */
  finish(cut: boolean): ModelCall[] {
    const real = this.#calls.filter((call) => call.name !== '' || call.args.begun)
    return real.map((call, position) => ({
      id: call.id ?? `call_${position + 1}`,
      name: call.name,
      ...call.args.read(cut && position === real.length - 1),
      ...(Object.keys(call.extra).length === 0 ? {} : { replay: call.extra }),
    }))
  }

  #callOf(delta: Delta): PartialCall {
    const known = this.#find(delta)
    if (known !== undefined && !this.#beginsAnother(known, delta)) return known
    const call: PartialCall = {
      id: delta.id,
      index: delta.index,
      name: known?.named === true && delta.name === undefined ? known.name : '',
      args: new ArgumentsBuffer(),
      named: false,
      extra: {},
      announced: false,
    }
    this.#calls.push(call)
    return call
  }

  #find({ id, index, name }: Delta): PartialCall | undefined {
    const byIndex = index === undefined ? undefined : this.#calls.findLast((call) => call.index === index)
    if (id !== undefined) {
      const byId = this.#calls.findLast(
        (call) => call.id === id && (index === undefined || call.index === index),
      )
      if (byId !== undefined) return byId
      const sameId = this.#calls.findLast((call) => call.id === id)
      // The index counts something else, or two calls share an id; `beginsAnother` tells.
      if (sameId !== undefined) return sameId
      // An id that comes late belongs to the call at its index; one that changes in mid-arguments means nothing.
      if (byIndex?.id === undefined) return byIndex
      return name === undefined && !byIndex.args.complete ? byIndex : undefined
    }
    if (index !== undefined) return byIndex
    const last = this.#calls.at(-1)
    // Without id and index a name is a new call once the last one has its arguments.
    return name !== undefined && last !== undefined && last.args.begun && last.name !== name
      ? undefined
      : last
  }

  /** True when this delta cannot be more of `call`. */
  #beginsAnother(call: PartialCall, { name, args, index }: Delta): boolean {
    if (name !== undefined && index !== undefined && call.index !== undefined && index !== call.index)
      return true
    if (!call.args.complete) return false
    if (!hasArguments(args)) return name !== undefined && name !== call.name
    if (call.args.repeats(args)) return name !== undefined && name !== call.name
    return name !== undefined || call.named
  }

  #addName(call: PartialCall, name: string | undefined): void {
    if (name === undefined) return
    if (call.args.complete) call.named = true
    if (name === call.name || call.args.begun) return
    // Cumulative (`read`, `read_file`) or in fragments (`read_`, `file`).
    call.name = call.name !== '' && name.startsWith(call.name) ? name : call.name + name
  }
}

function readDelta(element: Record<string, unknown>): Delta {
  // Some send the function's members flat.
  const body = isObject(element['function']) ? element['function'] : element
  return {
    id: textMember(element, 'id'),
    index: numberMember(element, 'index'),
    name: textMember(body, 'name'),
    args: member(body, 'arguments'),
    extra: Object.fromEntries(
      Object.entries(element).filter(
        ([name, value]) => !OWN_MEMBERS.has(name) && value !== null && value !== undefined,
      ),
    ),
  }
}

function hasArguments(args: unknown): boolean {
  return typeof args === 'string' ? args.trim() !== '' : args !== undefined && args !== null
}
