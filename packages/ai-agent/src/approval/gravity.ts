/** What a part of a call does at its worst, in words, and how grave that is: the gravest reason is the one that is read. */
import type { Part } from './parts.ts'
import type { ShellPart } from './shell/parts.ts'

type Run = Extract<ShellPart, { type: 'run' }>

/** From the gravest. What is in none of them comes last. */
export const DOWNLOADS = 'downloads a program and runs it'
const DESTROYS = new Set([
  'deletes without asking',
  'throws away what is not committed',
  'overwrites what others may have pushed',
  'overwrites a disk or a file',
])
const DELETES = 'deletes files'

const DOWNLOADERS = new Set(['curl', 'wget', 'fetch', 'aria2c'])
const RUNS_UNKNOWN = /^(?:has a shell (?:run|read) what |starts a shell with words that are not known)/
const SHELLS = new Set(['sh', 'bash', 'dash', 'zsh', 'source', '.'])
const INTERPRETERS = new Set(['python', 'python3', 'perl', 'ruby', 'node', 'php'])

/** What a program does that cannot be taken back; undefined where that is not known of it. */
export function graveWords(part: ShellPart): string | undefined {
  if (part.type !== 'run' || part.effect !== 'acts') return undefined
  const [name, ...rest] = part.words.map(({ literal, prefix }) => literal ?? prefix)
  const has = (short: string, ...long: string[]) =>
    rest.some(
      (word) =>
        long.includes(word) || (/^-[a-z]+$/i.test(word) && short.split('').some((one) => word.includes(one))),
    )
  switch (programOf(name)) {
    case 'rm':
      return has('rRf', '--recursive', '--force') ? 'deletes without asking' : DELETES
    case 'rmdir':
    case 'unlink':
      return DELETES
    case 'shred':
      return 'deletes without asking'
    case 'find':
      return rest.includes('-delete') ? 'deletes without asking' : undefined
    case 'dd':
    case 'mkfs':
      return 'overwrites a disk or a file'
    case 'git':
      return graveGit(rest, has)
    default:
      return undefined
  }
}

function graveGit(
  words: readonly string[],
  has: (short: string, ...long: string[]) => boolean,
): string | undefined {
  if (words.includes('push') && has('f', '--force', '--force-with-lease', '--mirror'))
    return 'overwrites what others may have pushed'
  const discards =
    (words.includes('reset') && words.includes('--hard')) || (words.includes('clean') && has('f', '--force'))
  return discards ? 'throws away what is not committed' : undefined
}

/** Of `curl … | sh` the part that runs what another part of the line fetches; -1 where nothing does. */
export function runsDownload(parts: readonly ShellPart[]): number {
  const fetching = parts.filter(
    (part): part is Run => part.type === 'run' && DOWNLOADERS.has(programOf(part.words[0]?.literal) ?? ''),
  )
  if (fetching.length === 0) return -1
  const files = new Set(fetching.flatMap(({ words }) => savedTo(words)))
  return parts.findIndex((part) => {
    if (part.type === 'unknown') return RUNS_UNKNOWN.test(part.because)
    if (part.type !== 'run') return false
    const [name, ...rest] = part.words.map(({ literal }) => literal)
    if (name !== undefined && files.has(plainName(name))) return true
    const [first] = rest.filter((word) => word !== '-')
    const program = programOf(name) ?? ''
    if (first === undefined) return INTERPRETERS.has(program) && rest.length === part.words.length - 1
    return (INTERPRETERS.has(program) || SHELLS.has(program)) && files.has(plainName(first))
  })
}

/** `curl -o FILE`, `wget -O FILE`. */
function savedTo(words: Run['words']): string[] {
  return words.flatMap(({ literal }, at) => {
    const file = /^(?:-\w*[oO]|--output|--output-document)$/.test(literal ?? '')
      ? words[at + 1]?.literal
      : undefined
    return file === undefined ? [] : [plainName(file)]
  })
}

function plainName(path: string): string {
  return path.replace(/^\.\//, '')
}

function programOf(name: string | undefined): string | undefined {
  return name
    ?.split('/')
    .at(-1)
    ?.replace(/^mkfs\..*/, 'mkfs')
}

/** Greater is graver. */
export function gravityOf(because: string, subject: Part['subject'], byRule: boolean): number {
  if (because === DOWNLOADS) return 5
  if (DESTROYS.has(because)) return 4
  // A person or an operator said that this must be looked at.
  if (byRule) return 3
  if (subject.type === 'unknown' || subject.type === 'host' || because === DELETES) return 2
  return subject.type === 'read' ? 0 : 1
}
