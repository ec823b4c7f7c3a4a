/**
 * How the code of this repository is kept small: rooms that are not too full, no files that are dust, no spreads that only
 * leave an undefined member out, and words that can be searched. Functions from all files to sentences about them.
 */
import { posix } from 'node:path'
import { specifiers, withoutComments } from './import-rules.ts'
import type { SourceFile } from './source-files.ts'

const SOURCE = /^(packages|mcp)\/[^/]+\/src\/.*\.tsx?$/

/** Files that may lie loose in the `src` of these packages; the others may stay flat. */
const LOOSE: Record<string, number> = { 'ai-agent': 5, sandbox: 8, service: 8, web: 8 }
const FLAT = 35
const FOLDER = 30

/** Folders with more files than a reader takes in at once. */
export function roomProblems(files: readonly SourceFile[]): string[] {
  const folders = Map.groupBy(
    files.map(({ path }) => path).filter((path) => SOURCE.test(path)),
    (path) => posix.dirname(path),
  )
  return [...folders].flatMap(([folder, { length }]) => {
    const root = /^(?:packages|mcp)\/([^/]+)\/src$/.exec(folder)?.[1]
    const most = root === undefined ? FOLDER : (LOOSE[root] ?? FLAT)
    return length <= most
      ? []
      : [`${folder}: ${length} files, at most ${most}; merge what is one thought, or make a folder`]
  })
}

const DUST_LINES = 60
/** Each is one of many of its kind: a reader looks for it by its name. */
const KINDS =
  /\/(migrations|policies|builtin|requests|http|commands)\/|[-/](routes|migrations|config)\.ts$|\/main\.tsx?$/
/** Files that stay beside their only importer, and why. */
const SEAMS: Record<string, string> = {
  'packages/ai-agent/src/model/configured-models.ts': 'the one place that chooses the wire of a model',
}

/** Small files with one importer: a reader opens them for nothing. */
export function dustProblems(files: readonly SourceFile[]): string[] {
  const importers = new Map<string, Set<string>>()
  for (const file of files) {
    if (!/\.(tsx?|mjs)$/.test(file.path)) continue
    for (const target of imported(file)) {
      const known = importers.get(target)
      if (known === undefined) importers.set(target, new Set([file.path]))
      else known.add(file.path)
    }
  }
  return files.flatMap(({ path, text }) => {
    if (!SOURCE.test(path) || KINDS.test(path) || Object.hasOwn(SEAMS, path)) return []
    if (text.split('\n').length > DUST_LINES) return []
    const all = [...(importers.get(path) ?? [])]
    const [only, ...others] = all.filter((importer) => SOURCE.test(importer))
    if (only === undefined || others.length > 0 || packageOf(only) !== packageOf(path)) return []
    if (all.some((importer) => !SOURCE.test(importer))) return []
    return [`${path}: ${text.split('\n').length - 1} lines that only ${only} imports; move them into it`]
  })
}

function packageOf(path: string): string {
  return path.split('/').slice(0, 2).join('/')
}

function imported({ path, text }: SourceFile): string[] {
  return specifiers(text).flatMap((specifier) => {
    if (specifier.startsWith('.')) return [posix.join(posix.dirname(path), specifier)]
    const ours = /^@sandlot\/([^/]+)\/(.+)$/.exec(specifier)
    if (ours === null) return []
    const [, name = '', below = ''] = ours
    return ['packages', 'mcp'].map((root) => `${root}/${name}/src/${below}.ts`)
  })
}

const EXPRESSION = String.raw`([A-Za-z_$][\w$]*(?:\??\.[\w$]+)*)`
const SPREAD = new RegExp(
  String.raw`\.\.\.\(${EXPRESSION} (?:=== undefined\s*\?\s*\{\}\s*:|!== undefined &&)\s*\{\s*(?:\w+: )?\1,?\s*\}\)`,
  'g',
)

/** `...(a === undefined ? {} : { a })`: an optional member may be undefined. */
export function spreadProblems(files: readonly SourceFile[]): string[] {
  return files
    .filter(({ path }) => SOURCE.test(path))
    .flatMap(({ path, text }) =>
      [...withoutComments(text).matchAll(SPREAD)].map(
        ([found]) => `${path}: ${found}; an optional member may be undefined`,
      ),
    )
}

/** Words with which a thing that acts is made a person; what acts has a name that can be searched. */
// `nobody` in quotation marks is a value.
const WORDS = /\b(hears?|heard|is told|are told|whoever|(?<!`)nobody|somebody)\b/i
const COLUMNS = 100

/** Comments with a person where a thing acts, and those that are too wide. */
export function wordProblems(files: readonly SourceFile[]): string[] {
  return files
    .filter(({ path }) => SOURCE.test(path))
    .flatMap(({ path, text }) => {
      const code = withoutComments(text).split('\n')
      return text.split('\n').flatMap((line, place) => {
        const ours = (code[place] ?? '').trimEnd()
        const comment = line.slice(ours.length)
        if (comment.trim() === '') return []
        const at = `${path}:${place + 1}`
        const word = WORDS.exec(comment)?.[0]
        return [
          ...(word === undefined ? [] : [`${at}: “${word}”; say what acts, by its name`]),
          // Behind code, in an example, or of a link, there is no other line for it.
          ...(line.length > COLUMNS &&
          ours.trim() === '' &&
          !/^\s*\* {3,}/.test(comment) &&
          /\S\s\S.*\S\s\S/.test(comment.slice(4))
            ? [`${at}: a comment of ${line.length} columns, at most ${COLUMNS}`]
            : []),
        ]
      })
    })
}
