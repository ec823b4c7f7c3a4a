/**
 * Which exported names nothing but tests use: what has no caller goes, and what only its own file needs is not exported.
 */
import { posix } from 'node:path'
import { withoutComments } from './import-rules.ts'
import type { SourceFile } from './source-files.ts'

const SOURCE = /^(packages|mcp)\/[^/]+\/src\/.*\.tsx?$/
const CODE = /\.(tsx?|mjs)$/
/** Folders of tests; what writes the generated documents is none. */
const TEST = /(^|\/)test\/(?!(.*\/)?[a-z-]+-docs\.ts$)/

export interface UsedRules {
  /** Files whose exports programs use, and why. */
  entries: Readonly<Record<string, string>>
  /** `path name` of what only tests use and stays, and why. */
  allowed: Readonly<Record<string, string>>
}

interface Import {
  file: string
  /** Undefined: any that its importer names. */
  name: string | undefined
}

/** Exported names without a user outside their own file and outside tests, and lines of the rules that nothing needs. */
export function usedProblems(files: readonly SourceFile[], { entries, allowed }: UsedRules): string[] {
  const code = files
    .filter(({ path }) => CODE.test(path))
    .map(({ path, text }) => ({ path, text: withoutComments(text) }))
  const subpaths = subpathsOf(files)
  const used = new Set<string>()
  const named: { file: string; importer: string }[] = []
  for (const { path, text } of code) {
    if (TEST.test(path)) continue
    for (const { file, name } of importsOf(path, text, subpaths))
      if (name === undefined) named.push({ file, importer: text })
      else used.add(`${file} ${name}`)
  }
  const unused = code
    .filter(({ path }) => SOURCE.test(path))
    .flatMap(({ path, text }) =>
      exportsOf(text)
        .filter((name) => !used.has(`${path} ${name}`))
        .filter((name) => !named.some(({ file, importer }) => file === path && hasWord(importer, name)))
        .map((name) => ({ path, key: `${path} ${name}` })),
    )
  const problems = unused
    .filter(({ path, key }) => !Object.hasOwn(entries, path) && !Object.hasOwn(allowed, key))
    .map(
      ({ key }) =>
        `${key}: only its own file or tests use it; take the word export away, or delete it, and test it through what uses it`,
    )
  const keys = new Set(unused.map(({ key }) => key))
  const idle = [
    ...Object.keys(entries).filter((path) => !files.some((file) => file.path === path)),
    ...Object.keys(allowed).filter((key) => !keys.has(key)),
  ]
  return [
    ...problems,
    ...idle.map((line) => `${line}: nothing needs this line; take it out of test/used.test.ts`),
  ]
}

function exportsOf(text: string): string[] {
  const declared = text.matchAll(
    /^export (?:(?:async|declare|abstract) )*(?:function\*?|const|let|class|interface|type|enum)\s+\*?\s*([\w$]+)/gm,
  )
  return [...declared].map((match) => match[1] ?? '')
}

/** `@sandlot/<package>/<name>` to its file, of the names that a package gives one by one. */
function subpathsOf(files: readonly SourceFile[]): Map<string, string> {
  const found = new Map<string, string>()
  for (const { path, text } of files) {
    if (!/^(packages|mcp)\/[^/]+\/package\.json$/.test(path)) continue
    const { name, exports = {} } = JSON.parse(text) as {
      name: string
      exports?: Record<string, { 'sandlot-source'?: string }>
    }
    for (const [subpath, { 'sandlot-source': source = '' }] of Object.entries(exports))
      found.set(posix.join(name, subpath), posix.join(posix.dirname(path), source))
  }
  return found
}

function importsOf(path: string, text: string, subpaths: ReadonlyMap<string, string>): Import[] {
  const statements = text.matchAll(
    /^[ \t]*(?:import|export)\b([^'"`;]*?)\bfrom\s*['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]/gm,
  )
  return [...statements].flatMap(([, clause, from, dynamic]): Import[] => {
    const file = fileOf(path, from ?? dynamic ?? '', subpaths)
    const names = clause === undefined ? undefined : /\{([^}]*)\}/.exec(clause)?.[1]
    if (names === undefined) return [{ file, name: undefined }]
    return names
      .split(',')
      .map((one) => one.trim().replace(/^type\s+/, ''))
      .map((one) => ({ file, name: one.split(/\s+as\s+/)[0] ?? '' }))
  })
}

function fileOf(path: string, written: string, subpaths: ReadonlyMap<string, string>): string {
  if (written.startsWith('.')) return posix.join(posix.dirname(path), written)
  // `#shared/…` in sandbox is a path in shared.
  const specifier = written.replace(/^#shared\//, '@sandlot/shared/')
  const exact = subpaths.get(specifier)
  if (exact !== undefined) return exact
  const [, name = '', rest = ''] = /^(@sandlot\/[^/]+)\/(.+)$/.exec(specifier) ?? []
  return subpaths.get(`${name}/*`)?.replace('*', rest) ?? specifier
}

function hasWord(text: string, name: string): boolean {
  return new RegExp(`(?<![\\w$])${name.replaceAll('$', '\\$')}(?![\\w$])`).test(text)
}
