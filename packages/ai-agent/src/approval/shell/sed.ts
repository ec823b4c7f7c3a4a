/**
 * Scripts of `sed` that only print and change what passes by: no `w`, `W`, `r`, `e`, no `s///e` and
 * `s///w`.
 */

/**
 * In brackets a delimiter is a letter to one sed and the end to another: no brackets with one, or
 * with a backslash, in them.
 */
const BRACKETS = String.raw`\[\^?(?:\[:[a-z]+:\]|[^\][\\\n/])+\]`
const REGEX = String.raw`\/(?:[^/\\\n[]|\\[^\n]|${BRACKETS})*\/[IM]*`
const ADDRESS = new RegExp(
  String.raw`^(?:(?:\d+(?:~\d+)?|\$|${REGEX})(?:\s*,\s*(?:[+~]?\d+|\$|${REGEX}))?)?\s*!?\s*`,
)
const TEXT = /^.(?:\\[^]|[^\\\n])*/
const BRACKETS_HERE = new RegExp(BRACKETS, 'y')

/**
 * True when every command of the script is one of the harmless ones, with `adds` also one that adds
 * text or a file. What is not understood is not harmless.
 */
export function isPlainSedScript(script: string, adds = false): boolean {
  let rest = script
  for (let guard = 0; guard < 200; guard++) {
    rest = rest.replace(/^[\s;}]+/, '')
    if (rest === '') return true
    if (rest.startsWith('#')) {
      rest = rest.replace(/^#[^\n]*/, '')
      continue
    }
    const address = ADDRESS.exec(rest)
    rest = rest.slice(address?.[0].length ?? 0)
    const after = adds && /^[aicr]/.test(rest) ? rest.replace(TEXT, '') : command(rest)
    if (after === undefined) return false
    rest = after
  }
  return false
}

/** The text after one command, or undefined when it is not a harmless one. */
function command(text: string): string | undefined {
  const letter = text[0] ?? ''
  if (letter === '{') return text.slice(1)
  if ('pPdDhHgGxnNlz='.includes(letter) && letter !== '') {
    const end = /^[pPdDhHgGxnNlz=][ \t]*(?=[;\n}#]|$)/.exec(text)
    return end === null ? undefined : text.slice(end[0].length)
  }
  if (letter === 'q' || letter === 'Q') {
    const end = /^[qQ][ \t]*\d*[ \t]*(?=[;\n}#]|$)/.exec(text)
    return end === null ? undefined : text.slice(end[0].length)
  }
  if (letter === 'b' || letter === 't' || letter === 'T' || letter === ':') {
    const end = /^[btT:][ \t]*\w*[ \t]*(?=[;\n}#]|$)/.exec(text)
    return end === null ? undefined : text.slice(end[0].length)
  }
  if (letter === 's' || letter === 'y') return substitution(text)
  return undefined
}

function substitution(text: string): string | undefined {
  const delimiter = text[1] ?? ''
  // More than a byte is more than a delimiter to some.
  if (!/^[!-~]$/.test(delimiter) || /[a-zA-Z0-9\\[\]]/.test(delimiter)) return undefined
  let at = 2
  for (const isRegex of [text.startsWith('s'), false]) {
    const end = endOf(text, at, delimiter, isRegex)
    if (end === undefined) return undefined
    at = end + 1
  }
  const flags = /^[gpiIm0-9]*[ \t]*(?=[;\n}#]|$)/.exec(text.slice(at))
  return flags === null ? undefined : text.slice(at + flags[0].length)
}

/** The position of the next delimiter, if every sed sees it there. */
function endOf(text: string, from: number, delimiter: string, isRegex: boolean): number | undefined {
  for (let at = from; at < text.length; at++) {
    if (text[at] === delimiter) return at
    if (text[at] === '\\') at++
    else if (isRegex && text[at] === '[') {
      BRACKETS_HERE.lastIndex = at
      const [brackets] = BRACKETS_HERE.exec(text) ?? []
      if (brackets === undefined || brackets.includes(delimiter)) return undefined
      at += brackets.length - 1
    }
  }
  return undefined
}
