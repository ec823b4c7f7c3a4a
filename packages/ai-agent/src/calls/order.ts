/**
 * When a call of a turn may run: neighbouring reads together, up to a limit; a call that changes
 * things alone; in the order of the model. A call that ends before its turn has come (denied,
 * invalid) is simply not waited for.
 */
interface Place {
  group: Group
  state: 'before' | 'waiting' | 'running' | 'over'
  entered: PromiseWithResolvers<void>
}

/** Neighbours that may run together; groups run one after another. */
interface Group {
  places: Place[]
  running: number
  /** Those that are not over. */
  left: number
  /** All before it run or are over. */
  from: number
}

export class CallOrder {
  readonly #places: readonly Place[]
  readonly #groups: Group[] = []
  readonly #limit: number
  #current = 0

  /** `limit`: reads at a time. */
  constructor(calls: readonly { readOnly: boolean }[], limit: number) {
    this.#limit = Math.max(1, limit)
    this.#places = calls.map(({ readOnly }, at) => {
      let group = this.#groups.at(-1)
      if (group === undefined || !readOnly || calls[at - 1]?.readOnly !== true) {
        group = { places: [], running: 0, left: 0, from: 0 }
        this.#groups.push(group)
      }
      const place: Place = { group, state: 'before', entered: Promise.withResolvers<void>() }
      group.places.push(place)
      group.left++
      return place
    })
  }

  /** Resolves when the call may run; asked again, at once. */
  enter(at: number): Promise<void> {
    const place = this.#places[at]
    if (place === undefined) throw new RangeError(`there is no call ${at} in this turn`)
    if (place.state === 'before') {
      place.state = 'waiting'
      this.#admit()
    }
    return place.entered.promise
  }

  /** The call has its outcome, or no caller waits for it any more. */
  over(at: number): void {
    const place = this.#places[at]
    if (place === undefined || place.state === 'over') return
    if (place.state === 'running') place.group.running--
    place.group.left--
    place.state = 'over'
    while (this.#groups[this.#current]?.left === 0) this.#current++
    this.#admit()
  }

  #admit(): void {
    const group = this.#groups[this.#current]
    if (group === undefined) return
    const { places } = group
    while (places[group.from]?.state === 'running' || places[group.from]?.state === 'over') group.from++
    for (let at = group.from; at < places.length && group.running < this.#limit; at++) {
      const place = places[at]
      if (place?.state !== 'waiting') continue
      place.state = 'running'
      group.running++
      place.entered.resolve()
    }
  }
}
