import type { ServerFrame } from '@sandlot/shared/frames'

/** Gathers frames and hands them on once per frame of the screen: a fast model costs one render and not one per token. */
export class FrameBatch {
  readonly #schedule: (work: () => void) => void
  readonly #apply: (frames: readonly ServerFrame[]) => void
  #frames: ServerFrame[] = []
  #scheduled = false

  /** `schedule`: run once, soon. `apply` never gets an empty batch. */
  constructor(schedule: (work: () => void) => void, apply: (frames: readonly ServerFrame[]) => void) {
    this.#schedule = schedule
    this.#apply = apply
  }

  add(frame: ServerFrame): void {
    this.#frames.push(frame)
    if (this.#scheduled) return
    this.#scheduled = true
    this.#schedule(() => {
      this.#scheduled = false
      this.flush()
    })
  }

  /** Now, because something is about to be decided from the state. */
  flush(): void {
    const frames = this.#frames
    if (frames.length === 0) return
    this.#frames = []
    this.#apply(frames)
  }
}
