/** The titles of the tests that a file declares, read from its text: for tables that say what is tested where. */
import { withoutComments } from './import-rules.ts'

/** Vitest's own, and what the contract suites and fixtures here call theirs. */
const DECLARES = /(?<![.\w])(?:test|it|describe|describeOnPostgres|apart|alone|deployed)\b/g
/** `test.each(cases)('…')`: these are called once before the title. */
const TAKES_ARGUMENTS = ['each', 'for', 'skipIf', 'runIf', 'extend']
const NEVER_RUN = ['skip', 'todo']
const STRING = /(['"`])((?:\\[\s\S]|(?!\1)[^\\])*)\1/y

interface Declared {
  group: boolean
  runs: boolean
  /** Absent where it is no literal. */
  title: string | undefined
  /** Where the brackets open that hold it, and the place after them. */
  at: number
  end: number
}

/**
 * Of tests and groups, as they are written. Not of those that are commented out, or skipped always, alone or with their
 * group, nor of a group whose tests are all skipped; `skipIf` and `runIf` do run somewhere.
 */
export function testTitles(text: string): string[] {
  const all = declarations(withoutComments(text))
  // What a group has from elsewhere, such as a contract, is not seen here: only what is seen to be skipped counts against it.
  const isLeft = ({ group, at, end }: Declared): boolean => {
    const inside = all.filter((other) => !other.group && at < other.at && other.at < end)
    return !group || inside.length === 0 || inside.some(({ runs }) => runs)
  }
  return all.flatMap((one) => (one.runs && one.title !== undefined && isLeft(one) ? [one.title] : []))
}

/** In their order; nothing of what is in a skipped one. */
function declarations(code: string): Declared[] {
  const found: Declared[] = []
  for (let from = 0; ;) {
    DECLARES.lastIndex = from
    const declared = DECLARES.exec(code)
    if (!declared) return found
    from = declared.index + declared[0].length
    const { at, modifiers } = call(code, from)
    if (code[at] !== '(') continue
    const runs = !modifiers.some((name) => NEVER_RUN.includes(name))
    const group = declared[0].startsWith('describe')
    const end = afterBrackets(code, at)
    STRING.lastIndex = at + 1 + (/^\s*/.exec(code.slice(at + 1))?.[0].length ?? 0)
    const title = STRING.exec(code)?.[2]?.replaceAll(/\\(.)/g, '$1')
    // A skipped group is to the group that it is in as a skipped test.
    found.push({ group: group && runs, runs, title, at, end })
    if (!runs) from = end
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
