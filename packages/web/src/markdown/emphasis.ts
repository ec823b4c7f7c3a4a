/**
 * Emphasis next to punctuation. By CommonMark, asterisks between a closing mark and a letter only
 * begin emphasis, so that `**「強調」**です` and `**“bold”**text` keep theirs. Here they end it as
 * well, and those between a letter and an opening mark begin it.
 */

/** A run of asterisks, as micromark has it. */
interface Sequence {
  _open?: boolean
  _close?: boolean
}

type State = (code: number | null) => State | undefined

interface Tokenizer {
  previous: number | null
  events: ['enter' | 'exit', Sequence, unknown][]
  parser: { constructs: { text: Record<number, Construct | Construct[] | undefined> } }
}

interface Construct {
  name?: string
  tokenize: (this: Tokenizer, effects: unknown, ok: State, nok: State) => State
  resolveAll?: (events: unknown[], context: Tokenizer) => unknown[]
}

const ASTERISK = 42
const OPENING = /[\p{Ps}\p{Pi}]/u
const CLOSING = /[\p{Pe}\p{Pf}.,:;!?%…。，、：；！？％]/u
const LETTER = /[\p{L}\p{N}]/u

const emphasis: Construct = {
  name: 'emphasisByPunctuation',
  tokenize(effects, ok, nok) {
    const { previous } = this
    const done: State = (code) => {
      const run = this.events.at(-1)?.[1]
      if (run !== undefined && CLOSING.test(charOf(previous)) && LETTER.test(charOf(code))) run._close = true
      if (run !== undefined && LETTER.test(charOf(previous)) && OPENING.test(charOf(code))) run._open = true
      return ok(code)
    }
    return attentionOf(this).tokenize.call(this, effects, done, nok)
  },
  resolveAll: (events, context) => attentionOf(context).resolveAll?.(events, context) ?? events,
}

/** The construct of CommonMark. */
function attentionOf({ parser }: Tokenizer): Construct {
  const found = [parser.constructs.text[ASTERISK]].flat().find((one) => one?.name === 'attention')
  if (found === undefined) throw new Error('micromark has no construct for emphasis')
  return found
}

function charOf(code: number | null): string {
  return code === null || code < 0 ? '' : String.fromCodePoint(code)
}

/** A plugin of remark. */
export function emphasisPlugin(this: { data: () => object }): void {
  const data: { micromarkExtensions?: unknown[] } = this.data()
  data.micromarkExtensions = [...(data.micromarkExtensions ?? []), { text: { [ASTERISK]: emphasis } }]
}
