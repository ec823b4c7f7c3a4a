/**
 * Rules of style: folders that are not too full, no tiny files, no spreads that only leave an undefined member out, and
 * words that can be searched. Functions from all files to sentences about them.
 */
import { posix } from 'node:path'
import { specifiers, withoutComments } from './import-rules.ts'
import type { SourceFile } from './source-files.ts'

const SOURCE = /^(packages|mcp)\/[^/]+\/src\/.*\.tsx?$/

/** Files that may lie loose in the `src` of these packages; the others are as any folder. */
const LOOSE: Record<string, number> = { 'ai-agent': 5, cli: 8, sandbox: 8, service: 8, web: 8 }
const FOLDER = 30

/** Folders with more files than a reader takes in at once. */
export function roomProblems(files: readonly SourceFile[]): string[] {
  const folders = Map.groupBy(
    files.map(({ path }) => path).filter((path) => SOURCE.test(path)),
    (path) => posix.dirname(path),
  )
  return [...folders].flatMap(([folder, { length }]) => {
    const root = /^(?:packages|mcp)\/([^/]+)\/src$/.exec(folder)?.[1]
    const most = LOOSE[root ?? ''] ?? FOLDER
    return length <= most
      ? []
      : [`${folder}: ${length} files, at most ${most}; merge what is one thought, or make a folder`]
  })
}

const DUST_LINES = 60
/** Each is one of many of its kind: a reader looks for it by its name. */
const KINDS =
  /\/(migrations|policies|builtin|requests|http|commands|preview\/views)\/|[-/](routes|migrations|config|actions)\.ts$|\/main\.tsx?$/
/** Files that stay beside their only importer, and why. */
const SEAMS: Record<string, string> = {
  'packages/web/src/markdown/math.tsx': 'loaded with KaTeX, when a text has math',
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

/** On a thread of a `WorkerPool`, which can be ended. */
const ON_A_THREAD = /-worker\.ts$/
/** Files whose expressions are harmless, and why. */
const HARMLESS: Record<string, string> = {
  'packages/ai-agent/src/tools/output/line-matcher.ts': 'only parsed here, and used on a thread',
  'packages/engine-gate/src/routes.ts': 'made of the verbs in this file',
  'packages/ai-agent/src/model/errors.ts': 'made of an operator’s host, escaped',
}

/**
 * Regular expressions and validators made of what others wrote: one that never ends holds up everybody. The page is its
 * person’s own.
 */
export function patternProblems(files: readonly SourceFile[]): string[] {
  return files
    .filter(({ path }) => SOURCE.test(path) && !path.startsWith('packages/web/'))
    .filter(({ path }) => !ON_A_THREAD.test(path) && !Object.hasOwn(HARMLESS, path))
    .flatMap((file) => {
      const code = withoutComments(file.text)
      const made = [...code.matchAll(/\bRegExp\(/g)]
        .map(({ index, 0: head }) => argumentsAt(code, index + head.length))
        .filter((given) => /[a-z]/.test(namesIn(given)))
      const validators = [
        ...specifiers(file.text).filter((one) => /\/validators\/|^@cfworker\/|^ajv/.test(one)),
        ...(code.match(/\bfromJSONSchema\(/g) ?? []),
      ]
      return [...made, ...validators].map(
        (what) => `${file.path}: ${what} may be made of what others wrote; run it in a WorkerPool`,
      )
    })
}

/** The names in an expression: constants of a file are in capitals. */
function namesIn(expression: string): string {
  return expression
    .replaceAll('String.raw', '')
    .replaceAll(/'(?:\\.|[^'\\\n])*'/g, '')
    .replaceAll(/`(?:\\.|[^`\\])*`/g, (template) =>
      [...template.matchAll(/\$\{([^}]*)\}/g)].map(([, name]) => name).join(' '),
    )
}

/** Words with which a thing that acts is made a person; what acts has a name that can be searched. */
// `nobody` in quotation marks is a value.
const WORDS = /\b(hears?|heard|is told|are told|whoever|(?<!`)nobody|somebody|anybody|lets? go)\b/i
/** The same in a name, and what a reader cannot search for. */
const NAME_WORDS = /\b(hears?|heard|whoever|nobody|somebody|anybody|lets? go|wish|wishes)\b/
const COLUMNS = 100

/** Comments, messages of the log and exported names with a person where a thing acts, and comments that are too wide. */
export function wordProblems(files: readonly SourceFile[]): string[] {
  return files
    .filter(({ path }) => SOURCE.test(path))
    .flatMap(({ path, text }) => {
      const bare = withoutComments(text)
      const code = bare.split('\n')
      const comments = text.split('\n').flatMap((line, place) => {
        const ours = (code[place] ?? '').trimEnd()
        const comment = line.slice(ours.length)
        if (comment.trim() === '') return []
        const at = `${path}:${place + 1}`
        const word = WORDS.exec(comment)?.[0]
        return [
          ...(word === undefined ? [] : [`${at}: “${word}”; say what acts, by its name`]),
          // Comments after code, examples and links cannot be wrapped.
          ...(line.length > COLUMNS &&
          ours.trim() === '' &&
          !/^\s*\* {3,}/.test(comment) &&
          /\S\s\S.*\S\s\S/.test(comment.slice(4))
            ? [`${at}: a comment of ${line.length} columns, at most ${COLUMNS}`]
            : []),
        ]
      })
      const messages = logMessages(bare).flatMap((message) => {
        const word = WORDS.exec(message)?.[0]
        return word === undefined ? [] : [`${path}: “${word}” in the log; say what acts, by its name`]
      })
      const names = exportedNames(bare)
        .filter((name) => NAME_WORDS.test(inWords(name)))
        .map((name) => `${path}: ${name} is exported; name what acts, or what it is`)
      return [...comments, ...messages, ...names]
    })
}

/** The texts in the calls of a log. */
function logMessages(code: string): string[] {
  const calls = code.matchAll(/\b\w*log(?:ger)?\??\.(?:trace|debug|info|warn|error|fatal)\(/gi)
  return [...calls].flatMap(({ index, 0: head }) =>
    [...argumentsAt(code, index + head.length).matchAll(/'((?:\\.|[^'\\\n])*)'|`((?:\\.|[^`\\])*)`/g)].map(
      ([, plain, template]) => plain ?? template ?? '',
    ),
  )
}

/** The text from `from`, which is behind a bracket, to the bracket that closes it. */
function argumentsAt(code: string, from: number): string {
  let depth = 1
  for (let at = from; at < code.length; at++) {
    if (code[at] === '(') depth++
    if (code[at] === ')' && --depth === 0) return code.slice(from, at)
  }
  return code.slice(from)
}

function exportedNames(code: string): string[] {
  const declared = code.matchAll(
    /^export (?:default )?(?:abstract )?(?:async )?(?:function\*?|class|const|let|interface|type|enum) (\w+)/gm,
  )
  return [...declared].map(([, name]) => name ?? '')
}

/** `saidPath`, `SAID_PATH` → `said path`. */
function inWords(name: string): string {
  return name
    .replaceAll('_', ' ')
    .replaceAll(/(?<=[a-z0-9])(?=[A-Z])/g, ' ')
    .toLowerCase()
}
