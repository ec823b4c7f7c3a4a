/**
 * Live output → rendered text, without reading the whole again for every piece. Pieces only ever
 * grow at the end, unless one replaced others or a gap was filled; then it is rendered anew.
 */
import type { OutputPiece } from '@sandlot/shared/call'
import { AnsiText, type Rendered } from './ansi-text.ts'

/** Text of gaps that was fetched, by its first byte. */
export type Filled = ReadonlyMap<number, string>

export class LiveAnsi {
  readonly #maxLines: number
  #ansi: AnsiText
  #last: OutputPiece | undefined
  #filled: Filled | undefined
  #end = 0

  constructor(maxLines = 1000) {
    this.#maxLines = maxLines
    this.#ansi = new AnsiText(maxLines)
  }

  /** Rendered text of these pieces. `describeGap`: the line shown in place of missing bytes. */
  render(pieces: readonly OutputPiece[], filled: Filled, describeGap: (bytes: number) => string): Rendered {
    const known = this.#last === undefined ? -1 : pieces.lastIndexOf(this.#last)
    // Pieces dropped at the front do not matter: their text has been rendered.
    const grown = known !== -1 && filled === this.#filled
    if (!grown) {
      this.#ansi = new AnsiText(this.#maxLines)
      this.#end = 0
    }
    for (const piece of pieces.slice(grown ? known + 1 : 0)) {
      if (piece.offset > this.#end) this.#gap(this.#end, piece.offset, filled, describeGap)
      this.#ansi.feed(piece.data)
      this.#end = piece.end
    }
    this.#last = pieces.at(-1)
    this.#filled = filled
    return this.#ansi.render()
  }

  #gap(from: number, to: number, filled: Filled, describeGap: (bytes: number) => string): void {
    const text = filled.get(from)
    this.#ansi.feed(text ?? `${from === 0 ? '' : '\n'}${describeGap(to - from)}\n`)
  }
}
