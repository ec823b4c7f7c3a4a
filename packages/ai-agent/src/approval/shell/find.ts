/** `find`: where it only looks, and what it would run. */
import { type Wrapped, nothing } from './parts.ts'
import { type ArgWord, mayBeOption, mayBecome } from './words.ts'

const NO_VALUE =
  '-daystart -depth -d -follow -ignore_readdir_race -noignore_readdir_race -mount -noleaf -xdev -empty -executable -false -nogroup -nouser -readable -true -writable -print -print0 -ls -prune -quit -not -a -and -o -or ! ( ) , -L -P -H'
const ONE_VALUE =
  '-maxdepth -mindepth -regextype -amin -anewer -atime -cmin -cnewer -ctime -fstype -gid -group -ilname -iname -inum -ipath -iregex -iwholename -links -lname -mmin -mtime -name -newer -path -perm -regex -samefile -size -type -uid -used -user -wholename -xtype -printf'

/** Tests, options and actions that only read, with the number of words that belong to each. */
const PRIMARIES = new Map([
  ...NO_VALUE.split(' ').map((name) => [name, 0] as const),
  ...ONE_VALUE.split(' ').map((name) => [name, 1] as const),
])

/** The number of words of this command's name; undefined: it is not listed. */
export function arityOf(name: string): number | undefined {
  return PRIMARIES.get(name) ?? (/^-newer[aBcm][aBcmt]$/.test(name) ? 1 : undefined)
}

/**
 * True when every word is a place, or one of the tests and actions that only read. The first word
 * is find's name.
 */
export function isPlainFind(words: readonly ArgWord[]): boolean {
  for (let at = 1; at < words.length; at++) {
    const word = words[at]
    if (word === undefined) break
    if (word.literal === undefined) {
      if (mayBeOption(word)) return false
      continue
    }
    const arity = arityOf(word.literal)
    if (arity !== undefined) {
      const values = words.slice(at + 1, at + 1 + arity)
      // A word that becomes several would push the next ones out of their place.
      if (values.some((value) => value.literal === undefined)) return false
      at += arity
    } else if (/^[-(!,]/.test(word.literal)) return false
  }
  return true
}

const FIND_RUNS = new Set(['-exec', '-execdir', '-ok', '-okdir'])
const ENDS = [';', '+', '{}']

/** Every `-exec … ;` or `+`; what find itself does is judged without them. */
export function findRuns(words: readonly ArgWord[]): Wrapped | undefined {
  const commands: ArgWord[][] = []
  const left: ArgWord[] = []
  let clear = true
  for (let at = 0; at < words.length; at++) {
    const word = words[at]
    if (word === undefined) break
    if (!FIND_RUNS.has(word.literal ?? '')) {
      left.push(word)
      continue
    }
    const inner: ArgWord[] = []
    const isEnd = (next: ArgWord): boolean =>
      next.literal === ';' || (next.literal === '+' && inner.at(-1)?.literal === '{}')
    let next = words[++at]
    for (; next !== undefined && !isEnd(next); next = words[++at]) inner.push(next)
    // A word that may be its end, or what makes a `+` behind it one, would make what follows it
    // actions of find.
    clear &&=
      next !== undefined && !inner.some((word) => word.loose || ENDS.some((end) => mayBecome(word, end)))
    const several = next?.literal === '+'
    commands.push(
      inner.map((part) => (part.literal?.includes('{}') === true ? { ...fileName(part), several } : part)),
    )
  }
  if (commands.length === 0) return undefined
  const problems = clear ? [] : ['has find run what may end before it seems to']
  return { ...nothing(isPlainFind(left) ? 'carries' : 'acts'), commands, problems }
}

/**
 * Names that find puts in begin with the folder that it was given, so they are no options unless
 * that is one.
 */
function fileName(word: ArgWord): ArgWord {
  return word.literal === '{}'
    ? { ...word, literal: undefined, prefix: './' }
    : { ...word, literal: undefined, prefix: word.literal?.split('{}')[0] ?? '' }
}
