/**
 * Files that the words of a command line delete or overwrite. A script that it runs may do so too,
 * and is not seen here.
 */
import { posix } from 'node:path'
import { lossesOfGit, runsByReading } from './losses-git.ts'
import { LOSING, lossesOfProgram } from './losses-programs.ts'
import { type Loss, lost } from './loss.ts'
import type { ShellPart } from './parts.ts'
import { systemName } from './words.ts'

/** The visible losses of each part of the line, in the order of `parts`. */
export function lossesOf(parts: readonly ShellPart[], line: string): Loss[][] {
  const bases = basesOf(parts)
  return parts.map((part, at) =>
    (hidesLoss(part, parts, line) ? lost('deletes', undefined) : lossesOfPart(part))
      .map((loss) => unlessUnread(loss, parts.slice(0, at)))
      .flatMap((loss) => placed(loss, bases)),
  )
}

/** An archive made by the line itself cannot be read before: it may hold anything. */
function unlessUnread(loss: Loss, before: readonly ShellPart[]): Loss {
  const [archive] = loss.paths ?? []
  if ((loss.does !== 'untars' && loss.does !== 'unzips') || archive === undefined) return loss
  const makes = before.some(
    (part) =>
      (part.type === 'write' || (part.type === 'run' && part.effect === 'acts')) &&
      part.text.includes(posix.basename(archive)),
  )
  return makes ? { does: 'overwrites', paths: loss.into === undefined ? undefined : [loss.into] } : loss
}

function placed(loss: Loss, bases: readonly string[] | undefined): Loss[] {
  const { does, paths, into } = loss
  const all = [...(paths ?? []), ...(into === undefined ? [] : [into])]
  if (paths === undefined || all.every((path) => path.startsWith('/'))) return [loss]
  if (bases === undefined) return [{ does, paths: undefined }]
  if (into !== undefined)
    return bases.map((base) => ({
      does,
      paths: paths.map((path) => join(base, path)),
      into: join(base, into),
    }))
  return [{ does, paths: paths.flatMap((path) => [...new Set(bases.map((base) => join(base, path)))]) }]
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
    // They run what they carry elsewhere.
    if (name === 'env' && changesFolder(rest)) return undefined
    if (name === 'find' && rest.some((word) => word === '-execdir' || word === '-okdir')) return undefined
    if (name !== 'cd') continue
    const [to] = rest
    if (rest.length !== 1 || to === undefined || to.startsWith('-')) return undefined
    bases.push(join(bases.at(-1) ?? '.', to))
  }
  return bases.length > MOST_FOLDERS ? undefined : bases
}

const MOST_FOLDERS = 4

function changesFolder(words: readonly (string | undefined)[]): boolean {
  const command = words.findIndex(
    (word, at) => word !== undefined && !/^-|=/.test(word) && !/^(-u|--unset)$/.test(words[at - 1] ?? ''),
  )
  return words.slice(0, command).some((word = '') => /^(-[a-zA-Z0]*C|--c)/.test(word))
}

function lossesOfPart(part: ShellPart): readonly Loss[] {
  if (part.type === 'write') return part.appends ? [] : lost('overwrites', part.path)
  if (part.type !== 'run') return []
  const [name, ...rest] = part.words
  const program = systemName(name?.literal)
  if (program === undefined || (rest.length === 1 && /^--(help|version)$/.test(rest[0]?.literal ?? '')))
    return []
  if (program === 'git') return part.effect === 'acts' ? lossesOfGit(rest) : runsByReading(rest)
  return part.effect === 'acts' ? lossesOfProgram(program, rest) : []
}

// * What is carried out by a program that is not followed: it may be one that loses files where a
// word of it has that one's name.

const FROM_INPUT = /^has a shell run what it reads/
const UNFOLLOWED =
  /^(?:runs (?:a program whose|commands in a way)|has (?:a shell|find) run|has words that are not|starts a shell|gives \S+ (?:the option|a (?:word|value)|options)|expands .* as bash source|is read by sh)/
const UNREAD = /^(?:is (?:too long|not complete|a command in)|could not be|has (?:a NUL|more parts))/
const UNNAMED = 'runs a program whose name is not known before it runs'
/** Programs take options from these, or other places than their words say. */
const REDIRECTS =
  /^sets (?:GIT_(?:DIR|WORK_TREE|INDEX_FILE|COMMON_DIR|EXEC_PATH|CONFIG\w*)|TAR_OPTIONS|ZIPOPT|UNZIP|GZIP|BZIP2?|XZ_\w+|POSIXLY_CORRECT),/
/** And these they run. */
const STARTS = /^sets (?:GIT_\w+|EDITOR|VISUAL|PAGER|BASH_ENV|RSYNC_RSH),/

function hidesLoss(part: ShellPart, parts: readonly ShellPart[], line: string): boolean {
  if (part.type !== 'unknown') return false
  const { because, text } = part
  if (UNREAD.test(because)) return true
  if (FROM_INPUT.test(because)) return parts.some((other) => namesLosing(other.text))
  if (because === UNNAMED && namesOther(parts, line)) return true
  if (REDIRECTS.test(because)) return parts.some((other) => other.type === 'run' && namesLosing(other.text))
  if (STARTS.test(because)) return namesLosing(text.replaceAll(/\bgit\b/g, ''))
  return (UNFOLLOWED.test(because) || /^(source|\.)\s.*<\(/s.test(text)) && namesLosing(text)
}

/** `c=rm; $c x`: a variable may get the name of a program that the line does not run itself. */
function namesOther(parts: readonly ShellPart[], line: string): boolean {
  const names = parts.flatMap((part) => (part.type === 'run' ? (part.words[0]?.literal ?? []) : []))
  const run = (program: string): number => names.filter((name) => name.split('/').at(-1) === program).length
  const named = losingIn(line)
  return named.some((program) => named.filter((other) => other === program).length > run(program))
}

function namesLosing(text: string): boolean {
  return losingIn(text).length > 0
}

function losingIn(text: string): string[] {
  return text.split(/[^\w.-]+/).filter((word) => LOSING.has(word))
}
