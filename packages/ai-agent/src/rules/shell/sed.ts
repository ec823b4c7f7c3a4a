/** Scripts of `sed` that only print and change what passes by: no `w`, `W`, `r`, `e`, no `s///e` and `s///w`. */

/** True when every command of the script is one of the harmless ones. What is not understood is not harmless. */
export function isPlainSedScript(script: string): boolean {
  let rest = script
  for (let guard = 0; guard < 200; guard++) {
    rest = rest.replace(/^[\s;}]+/, '')
    if (rest === '') return true
    if (rest.startsWith('#')) {
      rest = rest.replace(/^#[^\n]*/, '')
      continue
    }
    const address =
      /^(?:(?:\d+(?:~\d+)?|\$|\/(?:[^/\\\n]|\\[^\n])*\/[IM]*)(?:\s*,\s*(?:[+~]?\d+|\$|\/(?:[^/\\\n]|\\[^\n])*\/[IM]*))?)?\s*!?\s*/.exec(
        rest,
      )
    rest = rest.slice(address?.[0].length ?? 0)
    const after = command(rest)
    if (after === undefined) return false
    rest = after
  }
  return false
}

/** What stands behind one command, or undefined when it is not a harmless one. */
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
  if (delimiter === '' || /[\sa-zA-Z0-9\\]/.test(delimiter)) return undefined
  let at = 2
  for (let part = 0; part < 2; part++) {
    while (at < text.length && text[at] !== delimiter) at += text[at] === '\\' ? 2 : 1
    if (at >= text.length) return undefined
    at++
  }
  const flags = /^[gpiIm0-9]*[ \t]*(?=[;\n}#]|$)/.exec(text.slice(at))
  return flags === null ? undefined : text.slice(at + flags[0].length)
}
