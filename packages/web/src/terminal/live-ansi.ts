/**
 * Live output → rendered text, without reading the whole again for every piece. Pieces only ever
 * grow at the end, unless one replaced others or a gap was filled; then all is rendered again. Of a
 * flood only the end is read: the rest scrolls away before it is seen, and would block the page.
 */
import type { OutputPiece } from '@sandlot/shared/chat/call'
import { AnsiText, type Rendered } from './ansi-text.ts'

/** Characters that are read at once, but for a piece that has more. */
const MOST_CHARS = 128 * 1024

/** Text of gaps that was fetched, by its first byte. */
export type Filled = ReadonlyMap<number, string>

export class LiveAnsi {
  readonly #maxLines: number
  #ansi: AnsiText
  #last: OutputPiece | undefined
  #filled: Filled | undefined
  #end = 0

  constructor(maxLines = 400) {
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
    const unread = pieces.slice(grown ? known + 1 : 0)
    const flood = unread.slice(0, endWithin(unread, MOST_CHARS))
    if (flood.length > 0) {
      this.#ansi = new AnsiText(this.#maxLines)
      this.#ansi.feed(`${describeGap(flood.at(-1)?.end ?? 0)}\n`)
      this.#end = flood.at(-1)?.end ?? 0
    }
    for (const piece of unread.slice(flood.length)) {
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

/** The start of the end of these pieces with at most `chars`, or of the last one. */
function endWithin(pieces: readonly OutputPiece[], chars: number): number {
  let from = pieces.length
  let sum = 0
  while (from > 0) {
    sum += pieces[from - 1]?.data.length ?? 0
    if (sum > chars && from < pieces.length) break
    from--
  }
  return from
}
