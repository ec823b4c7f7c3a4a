/** The titles of the tests that a file declares, read from its text: for tables that say what is tested where. */
import { withoutComments } from './import-rules.ts'

/** Vitest's own, and what the contract suites and fixtures here call theirs. */
const DECLARES = /(?<![.\w])(?:test|it|describe|apart|alone|deployed)\b/g
/** `test.each(cases)('…')`: these are called once before the title. */
const TAKES_ARGUMENTS = ['each', 'for', 'skipIf', 'runIf', 'extend']
const NEVER_RUN = ['skip', 'todo']
const STRING = /(['"`])((?:\\[\s\S]|(?!\1)[^\\])*)\1/y

/**
 * Of tests and groups, as they are written. Not of those that are commented out, or skipped always, alone or with their
 * group; `skipIf` and `runIf` do run somewhere.
 */
export function testTitles(text: string): string[] {
  const code = withoutComments(text)
  const titles: string[] = []
  for (let from = 0; ;) {
    DECLARES.lastIndex = from
    const declared = DECLARES.exec(code)
    if (!declared) return titles
    from = declared.index + declared[0].length
    const { at, modifiers } = call(code, from)
    if (code[at] !== '(') continue
    if (modifiers.some((name) => NEVER_RUN.includes(name))) {
      from = afterBrackets(code, at)
      continue
    }
    STRING.lastIndex = at + 1 + (/^\s*/.exec(code.slice(at + 1))?.[0].length ?? 0)
    const title = STRING.exec(code)?.[2]
    if (title !== undefined) titles.push(title.replaceAll(/\\(.)/g, '$1'))
  }
}

/** Where the brackets that hold the title open, behind `.each(…)` and the like. */
function call(code: string, from: number): { at: number; modifiers: string[] } {
  const modifiers: string[] = []
  for (let at = from; ;) {
    const name = /^\s*\.\s*(\w+)/.exec(code.slice(at, at + 80))
    if (!name) return { at, modifiers }
    at += name[0].length
    modifiers.push(name[1] ?? '')
    if (!TAKES_ARGUMENTS.includes(name[1] ?? '')) continue
    // Types may stand before them.
    if (code[at] === '<') at = code.indexOf('>(', at) + 1
    at = afterBrackets(code, at)
  }
}

/** The place after what the bracket at `from` opens; brackets in strings are none. */
function afterBrackets(code: string, from: number): number {
  let depth = 0
  for (let at = from; at < code.length; at++) {
    STRING.lastIndex = at
    const string = STRING.exec(code)
    if (string) at += string[0].length - 1
    else if ('([{'.includes(code[at] ?? '')) depth += 1
    else if (')]}'.includes(code[at] ?? '') && --depth === 0) return at + 1
  }
  return code.length
}
