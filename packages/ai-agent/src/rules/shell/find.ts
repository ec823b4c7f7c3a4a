/** `find` without its actions. */
import { type ArgWord, mayBeOption } from './words.ts'

const NO_VALUE =
  '-daystart -depth -d -follow -ignore_readdir_race -noignore_readdir_race -mount -noleaf -xdev -empty -executable -false -nogroup -nouser -readable -true -writable -print -print0 -ls -prune -quit -not -a -and -o -or ! ( ) , -L -P -H'
const ONE_VALUE =
  '-maxdepth -mindepth -regextype -amin -anewer -atime -cmin -cnewer -ctime -fstype -gid -group -ilname -iname -inum -ipath -iregex -iwholename -links -lname -mmin -mtime -name -newer -path -perm -regex -samefile -size -type -uid -used -user -wholename -xtype -printf'

/** Tests, options and actions that only read, with the number of words that belong to each. */
const PRIMARIES = new Map([
  ...NO_VALUE.split(' ').map((name) => [name, 0] as const),
  ...ONE_VALUE.split(' ').map((name) => [name, 1] as const),
])

/** True when every word is a place, or one of the tests and actions that only read. The first word is find's name. */
export function isPlainFind(words: readonly ArgWord[]): boolean {
  for (let at = 1; at < words.length; at++) {
    const word = words[at]
    if (word === undefined) break
    if (word.literal === undefined) {
      if (mayBeOption(word)) return false
      continue
    }
    const arity = PRIMARIES.get(word.literal)
    if (arity !== undefined) {
      const values = words.slice(at + 1, at + 1 + arity)
      // A word that becomes several would push the next ones out of their place.
      if (values.some((value) => value.literal === undefined)) return false
      at += arity
    } else if (/^-newer[aBcm][aBcmt]$/.test(word.literal)) at++
    else if (/^[-(!,]/.test(word.literal)) return false
  }
  return true
}
