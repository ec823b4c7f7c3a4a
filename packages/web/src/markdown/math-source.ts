/**
 * Math in a model's text (`$$…$$`, `\[…\]`, `\(…\)`, `$…$`, bare environments) as code, which
 * Markdown leaves as it is: a block is a fence of the language `math`, the rest is a code span with
 * a mark.
 */

/** Private use: no text of a model begins a code span with it. */
const MARK = '\u{E000}'

/** Environments that are blocks of their own. */
const ENVIRONMENT = String.raw`(?:align(?:at|ed)?|equation|gather(?:ed)?|split|cases|array|[bBpvV]?matrix)\*?`

const PATTERN = new RegExp(
  [
    // Code stays code: fences, also unfinished ones, and spans.
    String.raw`(?<fence>(?<=^|\n)[ \t>]*(?:[-*+] |\d+[.)] )?(?<ticks>\x60{3,}|~{3,})[^\n]*(?:\n(?![ \t>]*\k<ticks>)[^\n]*)*(?:\n[ \t>]*\k<ticks>[^\n]*)?)`,
    String.raw`(?<span>(?<!\x60)(?<tick>\x60{1,2})(?!\x60)(?:(?!\n\s*\n)[^])*?[^\x60]\k<tick>(?!\x60))`,
    String.raw`(?<!\\)\$\$(?<dollars>(?:(?!\n\s*\n)[^$]|\\\$)+)\$\$`,
    String.raw`\\\[(?<square>(?:(?!\n\s*\n)[^])+?)\\\]`,
    String.raw`(?<!\\)(?<environment>\\begin\{(?<name>${ENVIRONMENT})\}(?:(?!\n\s*\n)[^])*?\\end\{\k<name>\})`,
    String.raw`\\\((?<round>(?:(?!\n\s*\n)[^])+?)\\\)`,
    // Pandoc's rule, so that prices stay prices and shell variables stay names.
    String.raw`(?<![\\$\w])\$(?<dollar>(?=[^\s$])(?:\\.|[^\\$\n\x60])+?(?<=\S))\$(?![\w$])`,
  ].join('|'),
  'g',
)

/** Possible ends of an unfinished text: the rest is its beginning. */
const UNFINISHED = new RegExp(
  String.raw`(?<=^|\n)(?<before>[ \t>]*)(?:\$\$|\\\[|(?=\\begin\{${ENVIRONMENT}\}))(?<rest>(?:(?!\n\s*\n|\$\$|\\\])[^])*)$`,
)

export function withMath(text: string, streaming: boolean): string {
  if (!/\$|\\(?:[[(]|begin\{)/.test(text)) return text
  const isCode = indentedCode(text)
  const done = text.replaceAll(PATTERN, (whole: string, ...rest: unknown[]) => {
    const groups = rest.at(-1) as Record<string, string | undefined>
    const offset = rest.at(-3) as number
    if (groups['fence'] !== undefined || groups['span'] !== undefined || isCode(offset)) return whole
    const block = groups['dollars'] ?? groups['square'] ?? groups['environment']
    const inline = groups['round'] ?? groups['dollar']
    if (inline !== undefined) return groups['dollar'] !== undefined && isPrice(inline) ? whole : span(inline)
    return block === undefined ? whole : displayed(block, text, offset, whole.length)
  })
  if (!streaming || (done.match(/^[ \t>]*(?:\x60{3,}|~{3,})/gm) ?? []).length % 2 === 1) return done
  return done.replace(UNFINISHED, (_whole, before: string, rest: string) => before + fence(before, rest))
}

/** The inline math that `withMath` made; undefined: it is other code. */
export function mathInCode(code: string): string | undefined {
  return code.startsWith(MARK) ? code.slice(MARK.length) : undefined
}

/** `$5 a month, 10$`, `$5/month, or 50$`: a number and words. `$5$` is math. */
function isPrice(inline: string): boolean {
  if (!/^\d/.test(inline) || /[\\^_={}<>]/.test(inline)) return false
  const words = (inline.match(/[A-Za-z]{3,}/g) ?? []).filter((word) => !FUNCTIONS.has(word))
  return words.length > 0 || (!/[+*/|-]/.test(inline) && !/^\d+(?:[.,]\d+)?$/.test(inline))
}

const FUNCTIONS = new Set('sin cos tan cot log exp min max mod lim gcd det'.split(' '))

/**
 * Tells whether a place is in code that is indented by four columns, after a blank line, more than
 * the list it is in.
 */
function indentedCode(text: string): (offset: number) => boolean {
  const ranges: { from: number; to: number }[] = []
  let [offset, item, mayBegin] = [0, 0, true]
  for (const line of text.split('\n')) {
    const [space = ''] = /^[ \t]*/.exec(line) ?? []
    const column = space.replaceAll(/ {0,3}\t/g, '    ').length
    if (line.trim() === '') mayBegin = true
    else {
      if (mayBegin && column < item) item = 0
      const isInside = column >= item + 4
      if (isInside && mayBegin) ranges.push({ from: offset, to: offset + line.length })
      else {
        const [marker] = /^[ \t]*(?:[-*+]|\d+[.)])[ \t]+/.exec(line) ?? []
        if (marker !== undefined) item = marker.length
        mayBegin = false
      }
    }
    offset += line.length + 1
  }
  return (at) => ranges.some(({ from, to }) => at >= from && at < to)
}

/** On lines of its own it is a block; within a line it stays there. */
function displayed(math: string, text: string, offset: number, length: number): string {
  const before = /[^\n]*$/.exec(text.slice(0, offset))?.[0] ?? ''
  const after = /^[^\n]*/.exec(text.slice(offset + length))?.[0] ?? ''
  if (!/^[ \t>]*(?:[-*+] |\d+[.)] )?[ \t]*$/.test(before) || after.trim() !== '') return span(math)
  return `${fence(before, math)}\n${before.replaceAll(/[^>\s]/g, ' ')}\`\`\``
}

/** `before`: what stands before it on its line, which is what its other lines are indented by. */
function fence(before: string, math: string): string {
  const indent = before.replaceAll(/[^>\s]/g, ' ')
  const body = math.replaceAll(before.includes('>') ? /^[ \t>]+/gm : /^[ \t]+/gm, '').trim()
  return ['```math', ...body.split('\n').map((line) => indent + line)].join('\n')
}

function span(math: string): string {
  const longest = Math.max(0, ...(math.match(/`+/g) ?? []).map(({ length }) => length))
  const ticks = '`'.repeat(longest + 1)
  return `${ticks}${MARK}${math.trim().replaceAll(/\s*\n\s*/g, ' ')}${math.endsWith('`') ? ' ' : ''}${ticks}`
}
