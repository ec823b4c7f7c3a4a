/**
 * What a command line shows that it deletes or overwrites, by its words. A script that it runs may
 * do so too, and nothing here sees that.
 */
import { posix } from 'node:path'
import type { ShellPart } from './parts.ts'
import { type ArgWord, systemName } from './words.ts'

export interface Loss {
  /**
   * `replaces`: overwrites a file, and leaves a folder as it is. `discards`: what is not committed
   * in the repository there. `runs`: nothing, if no program is named by the configuration of the
   * repository there, which git only reads.
   */
  does: 'deletes' | 'overwrites' | 'replaces' | 'discards' | 'runs'
  /**
   * Where: absolute, or from where the command line begins; several where a `cd` may fail. A
   * folder stands for all below it. Undefined: not known before it runs.
   */
  paths: readonly string[] | undefined
}

/** The same for the same loss, whenever the line is read. */
export function lossKey({ does, paths }: Loss): string {
  return JSON.stringify([does, paths])
}

type Run = Extract<ShellPart, { type: 'run' }>

/** Of each part what it shows to be lost, in the order of `parts`. */
export function lossesOf(parts: readonly ShellPart[]): Loss[][] {
  const bases = basesOf(parts)
  const placed = ({ does, paths }: Loss): Loss => ({
    does,
    paths:
      bases === undefined && paths?.some((path) => !path.startsWith('/')) === true
        ? undefined
        : paths?.flatMap((path) => [...new Set((bases ?? ['.']).map((base) => join(base, path)))]),
  })
  return parts.map((part) => lossesOfPart(part).map(placed))
}

function join(base: string, path: string): string {
  return path.startsWith('/') ? path : posix.join(base, path)
}

/** Folders in which a part may stand, each reached by one more `cd`; undefined: not known. */
function basesOf(parts: readonly ShellPart[]): string[] | undefined {
  const bases = ['.']
  for (const part of parts) {
    if (part.type !== 'run') continue
    const [name, ...rest] = part.words.map(({ literal }) => literal)
    if (name === 'pushd' || name === 'popd') return undefined
    if (name !== 'cd') continue
    const [to] = rest
    if (rest.length !== 1 || to === undefined || to.startsWith('-')) return undefined
    bases.push(join(bases.at(-1) ?? '.', to))
  }
  return bases.length > MOST_FOLDERS ? undefined : bases
}

const MOST_FOLDERS = 4

function lossesOfPart(part: ShellPart): Loss[] {
  if (part.type === 'write') return part.appends ? [] : [at('overwrites', part.path)]
  if (part.type !== 'run' || part.effect === 'carries') return []
  return part.effect === 'acts' ? lossesOfRun(part) : runsByReading(part)
}

function at(does: Loss['does'], path: string | undefined): Loss {
  return { does, paths: path === undefined ? undefined : [path] }
}

function runsByReading({ words: [name, ...rest] }: Run): Loss[] {
  if (systemName(name?.literal) !== 'git') return []
  const { place, verb } = gitCommand(rest)
  return verb === 'version' || rest[0]?.literal === '--version' ? [] : [at('runs', place)]
}

function lossesOfRun({ words }: Run): Loss[] {
  const [name, ...rest] = words
  const program = systemName(name?.literal)
  const { operands, has } = readArguments(rest)
  switch (program) {
    case 'rm':
    case 'unlink':
    case 'shred':
      return operands.map((path) => at('deletes', path))
    case 'mv':
    case 'cp':
    case 'install':
    case 'rsync':
      return has('n', '--no-clobber') && program !== 'rsync' ? [] : intoLast(operands, has)
    case 'ln':
      return has('f', '--force') ? intoLast(operands, has) : []
    case 'tee':
      return has('a', '--append') ? [] : operands.map((path) => at('overwrites', path))
    case 'truncate':
      return operands.map((path) => at('overwrites', path))
    case 'sed':
    case 'perl':
      return has('i', '--in-place') ? operands.map((path) => at('overwrites', path)) : []
    case 'dd':
      return rest.flatMap(({ literal, prefix }) =>
        prefix.startsWith('of=') ? [at('overwrites', literal?.slice('of='.length))] : [],
      )
    case 'find':
      return rest.some(({ literal }) => literal === '-delete') ? [at('deletes', undefined)] : []
    case 'git':
      return lossesOfGit(rest)
    default:
      return []
  }
}

interface Arguments {
  /** Words that are no options; undefined: not known before it runs. */
  operands: (string | undefined)[]
  has: (short: string, long: string) => boolean
}

function readArguments(words: readonly ArgWord[]): Arguments {
  const end = words.findIndex(({ literal }) => literal === '--')
  const before = end < 0 ? words : words.slice(0, end)
  const options = before.flatMap(({ prefix }) => (prefix.startsWith('-') ? [prefix] : []))
  return {
    operands: [
      ...before.filter(({ prefix }) => !prefix.startsWith('-') || prefix === '-'),
      ...(end < 0 ? [] : words.slice(end + 1)),
    ].map(({ literal }) => literal),
    has: (short, long) =>
      options.some(
        (word) =>
          word === long ||
          word.startsWith(`${long}=`) ||
          (/^-[A-Za-z0-9]/.test(word) && word.slice(1).includes(short)),
      ),
  }
}

/** The last operand is a file, or a folder that gets the others under their own names. */
function intoLast(operands: Arguments['operands'], has: Arguments['has']): Loss[] {
  const to = operands.at(-1)
  const from = operands.slice(0, -1)
  if (from.length === 0 || to === undefined || has('t', '--target-directory'))
    return [at('overwrites', undefined)]
  if (from.includes(undefined)) return [at('overwrites', undefined)]
  const names = from.map((path) => posix.join(to, posix.basename(path ?? '')))
  return [at('replaces', to), { does: 'overwrites', paths: names }]
}

/** Git keeps what is committed; these throw away what is not, or what only git still has. */
function lossesOfGit(words: readonly ArgWord[]): Loss[] {
  const { place, verb, rest } = gitCommand(words)
  const { operands, has } = readArguments(rest)
  const says = (...texts: string[]): boolean => rest.some(({ literal = '' }) => texts.includes(literal))
  const discards = [at('discards', place)]
  const gone = [at('deletes', undefined)]
  switch (verb) {
    case 'clean':
      return has('f', '--force') && !has('n', '--dry-run') ? gone : []
    case 'reset':
      return says('--hard', '--merge', '--keep') ? discards : []
    case 'checkout':
      return says('--', '.', '-f', '--force') || operands.length > 1 || operands.some(isPathLike)
        ? discards
        : []
    case 'switch':
      return has('f', '--force') || says('--discard-changes') ? discards : []
    case 'restore':
      return says('--staged', '-S') && !says('--worktree', '-W') ? [] : discards
    case 'rm':
      return has('f', '--force') ? discards : []
    case 'stash':
      return says('drop', 'clear') ? gone : []
    case 'branch':
      return says('-D', '-Df', '-fd', '-df') ? gone : []
    case 'reflog':
      return says('expire', 'delete') ? gone : []
    case 'update-ref':
      return says('-d') ? gone : []
    case 'prune':
      return gone
    case 'gc':
      return rest.some(({ prefix }) => prefix.startsWith('--prune')) ? gone : []
    case 'worktree':
      return says('remove') && has('f', '--force') ? gone : []
    default:
      return []
  }
}

/** More likely a file than the name of a branch. */
function isPathLike(operand: string | undefined): boolean {
  return operand === undefined || /[./]/.test(operand)
}

const NO_PLACE = new Set(['-c', '-P', '--no-pager', '--no-optional-locks', '--literal-pathspecs'])

/** `place`: where it runs, undefined where that is not known. */
function gitCommand(words: readonly ArgWord[]): {
  place: string | undefined
  verb: string | undefined
  rest: readonly ArgWord[]
} {
  let place: string | undefined = '.'
  let first = 0
  for (; words[first]?.prefix.startsWith('-') === true; first++) {
    const option = words[first]?.literal
    if (option === '-c') first++
    if (option !== '-C') {
      if (!NO_PLACE.has(option ?? '')) place = undefined
      continue
    }
    const to = words[++first]?.literal
    place = place === undefined || to === undefined ? undefined : join(place, to)
  }
  return { place, verb: words[first]?.literal, rest: words.slice(first + 1) }
}
