/**
 * When a call of a turn may run: neighbouring reads together, up to a limit; a call that changes things alone; in the
 * order of the model. A call that ends before its turn has come (denied, invalid) is simply not waited for.
 */
interface Place {
  /** Which group of neighbours; groups run one after another. */
  group: number
  state: 'before' | 'waiting' | 'running' | 'over'
  entered: PromiseWithResolvers<void>
}

export class CallOrder {
  readonly #places: Place[]
  readonly #limit: number

  /** `limit`: reads at a time. */
  constructor(calls: readonly { readOnly: boolean }[], limit: number) {
    this.#limit = Math.max(1, limit)
    let group = 0
    this.#places = calls.map(({ readOnly }, at) => {
      if (at > 0 && !(readOnly && calls[at - 1]?.readOnly === true)) group++
      return { group, state: 'before', entered: Promise.withResolvers<void>() }
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

  /** The call has its outcome, or nobody waits for it any more. */
  over(at: number): void {
    const place = this.#places[at]
    if (place === undefined) return
    place.state = 'over'
    this.#admit()
  }

  #admit(): void {
    const current = this.#places.find(({ state }) => state !== 'over')?.group
    const group = this.#places.filter((place) => place.group === current)
    let running = group.filter(({ state }) => state === 'running').length
    for (const place of group) {
      if (place.state !== 'waiting' || running >= this.#limit) continue
      place.state = 'running'
      running++
      place.entered.resolve()
    }
  }
}
