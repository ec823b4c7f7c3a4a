/** One rule against one part of a call. */
import type { RuleMatch } from '@sandlot/shared/chat/rules'
import { LRUCache } from 'lru-cache'
import { WORKSPACE, absolutePath, isOrdersFile } from './files.ts'
import { matchesHost, hostPatternProblem } from './hosts.ts'
import type { Part } from './parts.ts'
import type { CallRequest } from './request.ts'
import { certainlyMatches, meantBy, patternProblem } from './shell/pattern.ts'
import type { ArgWord } from './shell/words.ts'

/**
 * `maybe`: what the part is about is not known before it runs, and it may be what the rule is
 * about.
 */
export type Answer = 'yes' | 'maybe' | 'no'

/** True if a rule that allows covers the part: certain matches only. */
export function covers(match: RuleMatch, part: Part, request: CallRequest): boolean {
  if (isOrders(part) && !('command' in match))
    return 'file' in match && namesOrders(match.file) && coversFile(match, part)
  if ('tool' in match) return matchesTool(match.tool, request.ruleId ?? request.tool)
  if ('command' in match) return isCommand(match.command, request)
  const { subject } = part
  if ('shell' in match) return subject.type === 'run' && certainlyMatches(match.shell, subject.words)
  if ('host' in match) return subject.type === 'host' && matchesHost(match.host, subject.host, subject.port)
  return coversFile(match, part)
}

function coversFile(match: Extract<RuleMatch, { file: string }>, { subject }: Part): boolean {
  const access = subject.type === 'file' ? subject.access : subject.type
  if (access !== 'read' && access !== 'write') return false
  if (match.access !== undefined && match.access !== access) return false
  const path = 'path' in subject ? subject.path : undefined
  // A relative path of a redirection begins wherever the shell stands.
  return path !== undefined && path.startsWith('/') && matchesPath(match.file, absolutePath(path))
}

/** A file that programs take orders from: a rule that allows has to name such a place itself. */
function isOrders({ subject }: Part): boolean {
  if (subject.type !== 'file' && subject.type !== 'write') return false
  if (subject.type === 'file' && subject.access === 'read') return false
  return subject.path !== undefined && isOrdersFile(subject.path)
}

function namesOrders(pattern: string): boolean {
  return isOrdersFile(pattern.replace(/[*?].*$/s, '').replace(/\/$/, ''))
}

/** True if a rule that denies or asks is meant: in doubt `maybe`. */
export function concerns(match: RuleMatch, part: Part, request: CallRequest): Answer {
  if ('tool' in match)
    return [request.tool, request.ruleId ?? ''].some((id) => matchesTool(match.tool, id)) ? 'yes' : 'no'
  if ('command' in match) return isCommand(match.command, request) ? 'yes' : 'no'
  const { subject } = part
  if ('shell' in match) {
    if (subject.type === 'run') return meantBy(match.shell, subject.words)
    return subject.type === 'unknown' ? 'maybe' : 'no'
  }
  if ('host' in match) {
    if (subject.type === 'host') return matchesHost(match.host, subject.host, subject.port) ? 'yes' : 'no'
    return subject.type === 'run' ? namesHost(match.host, subject.words) : 'no'
  }
  const { file, access } = match
  switch (subject.type) {
    case 'file':
      if (coversFile(match, part)) return 'yes'
      return subject.below && mayBeBelow(file, subject.path) && (access ?? subject.access) === subject.access
        ? 'maybe'
        : 'no'
    case 'read':
    case 'write':
      if (access !== undefined && access !== subject.type) return 'no'
      if (subject.path === undefined) return 'maybe'
      if (matchesPath(file, absolutePath(subject.path))) return 'yes'
      return subject.path.startsWith('/') ? 'no' : 'maybe'
    case 'run':
      return namesFile(file, access, subject)
    case 'unknown':
      return 'maybe'
    default:
      return 'no'
  }
}

/**
 * True if a match of a pattern may lie below a folder: as far as it is fixed, one is the beginning
 * of the other.
 */
function mayBeBelow(pattern: string, folder: string): boolean {
  const fixed = absolutePath(pattern.replace(/[*?].*$/s, ''))
  const below = (path: string, of: string): boolean => path === of || of === '/' || path.startsWith(`${of}/`)
  return below(fixed, folder) || below(folder, fixed)
}

function isCommand(command: string, { asks }: CallRequest): boolean {
  return asks.some((ask) => ask.kind === 'shell' && ask.command === command)
}

/** `*` at the end of an id stands for the rest. */
function matchesTool(pattern: string, id: string): boolean {
  return pattern.endsWith('*') ? id.startsWith(pattern.slice(0, -1)) : pattern === id
}

/** They print what they are given, or where they are; no file. */
const OPENS_NOTHING = new Set(
  'echo printf true false : pwd date sleep seq cd exit set whoami id uname test ['.split(' '),
)

/**
 * A program opens what it likes: a path among its words is certain, a word that is not known may be
 * one. A command that runs only because it reads may read this too, unless it opens nothing.
 */
function namesFile(
  file: string,
  access: 'read' | 'write' | undefined,
  subject: Extract<Part['subject'], { type: 'run' }>,
): Answer {
  const [head, ...rest] = subject.words
  const reads = subject.effect !== 'acts'
  if (access === 'write' && reads) return 'no'
  if (OPENS_NOTHING.has(head?.literal ?? '')) return 'no'
  const paths = rest.flatMap(({ literal }) => (literal === undefined ? [] : pathsIn(literal)))
  if (paths.some((path) => matchesPath(file, path))) return 'yes'
  const opensUnnamed = subject.effect === 'proven' || rest.some(({ literal }) => literal === undefined)
  // A folder that is moved, packed or copied takes along what is in it.
  return opensUnnamed || paths.some((path) => mayBeBelow(file, path)) ? 'maybe' : 'no'
}

/** Paths that a word may name: itself, and the text after the `=` of an option. */
function pathsIn(word: string): string[] {
  const value = word.includes('=') ? word.slice(word.indexOf('=') + 1) : undefined
  return [word, ...(value === undefined || value === '' ? [] : [value])].map(absolutePath)
}

/** A URL among the words, or a name by itself. */
function namesHost(pattern: string, words: readonly ArgWord[]): Answer {
  for (const { literal } of words.slice(1)) {
    if (literal === undefined) continue
    const host = /^(?:[a-z][a-z0-9+.-]*:\/\/)?(?:[^/@\s]*@)?([^/:@\s]+)/i.exec(literal)?.[1] ?? ''
    if (matchesHost(pattern, host, undefined) || matchesHost(pattern.replace(/:\d+$/, ''), host, undefined))
      return 'yes'
  }
  return 'no'
}

// ── Patterns of paths ───────────────────────────────────────────────────────────────────────────

/**
 * More wildcards than this say nothing that a reader could check; each costs one pass over a path.
 */
const MAX_WILDCARDS = 32
const MAX_CACHED = 500

type Step = { text: string } | '?' | '*' | '**' | '/**/' | '/**'

/** `/**` only at the end. */
const TOKENS = /\/\*\*$|\/\*\*\/|\*\*|[*?]/g

const parsed = new LRUCache<string, readonly Step[]>({ max: MAX_CACHED })

/** Why `pattern` cannot stand in a rule; undefined when it can. */
function pathPatternProblem(pattern: string): string | undefined {
  const wildcards = stepsOf(pattern).filter((step) => typeof step === 'string').length
  return wildcards > MAX_WILDCARDS ? `has ${wildcards} wildcards; ${MAX_WILDCARDS} may be in it` : undefined
}

/**
 * `*` and `?` within a name, `**` over folders; `folder/**` also means the folder. Relative
 * patterns begin at the workspace.
 */
function matchesPath(pattern: string, path: string): boolean {
  // Which beginnings of the path the steps so far can stand for.
  let reached = new Uint8Array(path.length + 1)
  reached[0] = 1
  for (const step of stepsOf(pattern)) {
    const next = new Uint8Array(path.length + 1)
    take(step, path, reached, next)
    reached = next
  }
  return reached[path.length] === 1
}

function stepsOf(pattern: string): readonly Step[] {
  const known = parsed.get(pattern)
  if (known !== undefined) return known
  const absolute = pattern.startsWith('/') ? pattern : `${WORKSPACE}/${pattern}`
  const steps: Step[] = []
  let from = 0
  for (const { 0: token, index } of absolute.matchAll(TOKENS)) {
    if (index > from) steps.push({ text: absolute.slice(from, index) })
    steps.push(token as Exclude<Step, object>)
    from = index + token.length
  }
  if (from < absolute.length) steps.push({ text: absolute.slice(from) })
  parsed.set(pattern, steps)
  return steps
}

/**
 * One pass over the path: from the beginnings in `reached` to those in `next`, with `step` behind
 * them.
 */
function take(step: Step, path: string, reached: Uint8Array, next: Uint8Array): void {
  if (typeof step === 'object') {
    const { text } = step
    for (let at = reached.indexOf(1); at !== -1; at = reached.indexOf(1, at + 1))
      if (path.startsWith(text, at)) next[at + text.length] = 1
    return
  }
  let open = false
  for (let at = 0; at <= path.length; at++) {
    const here = reached[at] === 1
    const slash = path[at] === '/'
    switch (step) {
      case '?':
        if (here && at < path.length && !slash) next[at + 1] = 1
        break
      case '*':
        open ||= here
        if (open) next[at] = 1
        if (slash) open = false
        break
      case '**':
        open ||= here
        if (open) next[at] = 1
        break
      case '/**':
        if (here || open) next[at] = 1
        open ||= here && slash
        break
      case '/**/':
        open ||= here && slash
        if (open && slash) next[at + 1] = 1
        break
    }
  }
}

// ── Rules that can never match ──────────────────────────────────────────────────────────────────

/** The problem and the correct form; undefined when it is fine. */
export function matchProblem(match: RuleMatch): string | undefined {
  if ('shell' in match) return patternProblem(match.shell)
  if ('host' in match) {
    const problem = hostPatternProblem(match.host)
    return problem === undefined
      ? undefined
      : `${problem}; write example.org, *.example.org or example.org:8080`
  }
  if ('file' in match) {
    return /(^|\/)\.\.(\/|$)/.test(match.file)
      ? 'must not climb with ..; write a path of the workspace, like secrets/** or /workspace/secrets/**'
      : pathPatternProblem(match.file)
  }
  if ('tool' in match && /\*./.test(match.tool))
    return 'has * before its end; write name, server::name or server::*'
  return undefined
}
