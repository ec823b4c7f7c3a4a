/** Limits the members of exported interfaces. */
import { withoutComments } from './import-rules.ts'
import type { SourceFile } from './source-files.ts'

export const MOST_MEMBERS = 12

export interface Seam {
  path: string
  name: string
  /** Its own members and those of the interfaces that it extends. */
  members: readonly string[]
}

interface Declared extends Omit<Seam, 'members'> {
  own: readonly string[]
  extended: readonly string[]
}

/** The text from the `{` at `from` to its `}`. */
function blockAt(text: string, from: number): string {
  let depth = 0
  for (let at = from; at < text.length; at++) {
    if (text[at] === '{') depth++
    if (text[at] === '}' && --depth === 0) return text.slice(from + 1, at)
  }
  return text.slice(from + 1)
}

/** The names at the top level of an interface's body: what stands inside brackets is a type, not a member. */
function memberNames(body: string): string[] {
  let depth = 0
  const flat = body.split('').filter((char) => {
    if ('{(['.includes(char)) return depth++ === 0
    if ('})]'.includes(char)) return --depth === 0
    return depth === 0
  })
  const member =
    /(?:^|[;\n])[ \t]*(?:readonly[ \t]+)?(?:(?:get|set)[ \t]+)?(?:([\w$]+|'[^']*')\??(?=[:(<])|(?=[([]))/g
  const names = [...flat.join('').matchAll(member)].map(([, name], at) => name ?? `signature ${at}`)
  return [...new Set(names)]
}

function declaredIn({ path, text }: SourceFile): Declared[] {
  const code = withoutComments(text)
  const heads = code.matchAll(/^(?:export )?interface (\w+)(?:<[^{]*?>)?(?: extends ([^{]+))? \{/gm)
  return [...heads].map((head) => {
    const [whole, name = '', bases = ''] = head
    const own = memberNames(blockAt(code, head.index + whole.length - 1))
    return { path, name, own, extended: bases.match(/\b[A-Z]\w*/g) ?? [] }
  })
}

/** Every exported interface, with all its members. */
export function seamsOf(files: readonly SourceFile[]): Seam[] {
  const declared = files.flatMap(declaredIn)
  const byName = Map.groupBy(declared, ({ name }) => name)
  const all = ({ path, own, extended }: Declared): string[] => {
    const bases = extended.flatMap((name) => {
      const named = byName.get(name) ?? []
      const base = named.find((one) => one.path === path) ?? named[0]
      return base === undefined ? [] : all(base)
    })
    return [...new Set([...own, ...bases])]
  }
  const exported = new Set(
    files.flatMap(({ path, text }) =>
      [...text.matchAll(/^export interface (\w+)/gm)].map(([, name]) => `${path} ${name}`),
    ),
  )
  return declared
    .filter(({ path, name }) => exported.has(`${path} ${name}`))
    .map((one) => ({ path: one.path, name: one.name, members: all(one) }))
}

/** Interfaces with more members than that, and exceptions that are none any more. `exceptions`: by name, with the reason. */
export function seamProblems(
  seams: readonly Seam[],
  exceptions: Readonly<Record<string, string>> = {},
): string[] {
  const wide = seams.filter(({ members }) => members.length > MOST_MEMBERS)
  return [
    ...wide
      .filter(({ name }) => !(name in exceptions))
      .map(
        ({ path, name, members }) =>
          `${path}: ${name} has ${members.length} members, and may have ${MOST_MEMBERS}: pass on what its callers use, ` +
          `or put what belongs together into one member`,
      ),
    ...Object.keys(exceptions)
      .filter((name) => !wide.some((seam) => seam.name === name))
      .map((name) => `${name} has no more than ${MOST_MEMBERS} members; take it out of the exceptions`),
  ]
}
