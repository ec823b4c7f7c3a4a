/**
 * Losses of utilities whose words are a language: the expression of `find`, the letters of `tar`,
 * the scripts of `sed` and `awk`.
 */
import { arityOf } from './find.ts'
import { type Loss, UNKNOWN, each, lost, written } from './loss.ts'
import { readArguments } from './options.ts'
import { isPlainSedScript } from './sed.ts'
import { type ArgWord, knownWord } from './words.ts'

export function lossesOfDd(words: readonly ArgWord[]): readonly Loss[] {
  return words.flatMap(({ literal, prefix, loose }) => {
    if (prefix.startsWith('of=')) return lost('overwrites', literal?.slice('of='.length))
    const isKnown = /^(if|bs|ibs|obs|cbs|count|skip|seek|conv|iflag|oflag|status)=/.test(prefix)
    return isKnown && !loose ? [] : UNKNOWN
  })
}

export function lossesOfFind(words: readonly ArgWord[]): readonly Loss[] {
  const losses: Loss[] = []
  for (let at = 0; at < words.length; at++) {
    const { literal } = words[at] ?? {}
    const name = literal ?? ''
    const arity = arityOf(name)
    if (/^-(fprint0?|fls|fprintf)$/.test(name)) losses.push(...lost('overwrites', words[++at]?.literal))
    else if (/^-(exec|execdir|ok|okdir)$/.test(name)) {
      // It is a part of its own.
      while (at < words.length && words[at]?.literal !== ';' && words[at]?.literal !== '+') at++
    } else if (arity !== undefined) at += arity
    else if (literal === undefined ? words[at]?.loose === true : /^[-(!,]/.test(literal))
      return lost('deletes', undefined)
  }
  return losses
}

const TAR_VALUED = 'fCTXbHKNV'
const TAR = `-cxtruAdzjJaZvpkOoSmhlwWsPB -${TAR_VALUED}= create extract get list append update catenate concatenate diff compare gzip bzip2 xz zstd lzma auto-compress verbose preserve-permissions keep-old-files skip-old-files keep-newer-files to-stdout no-same-owner no-same-permissions same-owner same-permissions touch dereference file= directory= files-from= exclude= exclude-from= exclude-vcs wildcards strip-components= one-file-system totals numeric-owner owner= group= mode= mtime= sort= format= no-recursion warning= anchored no-wildcards transform= absolute-names null`

export function lossesOfTar([first, ...others]: readonly ArgWord[]): readonly Loss[] {
  if (first?.literal === undefined) return UNKNOWN
  // `tar xzf a.tar`: the letters' values follow in their order.
  const letters = /^[A-Za-z]+$/.test(first.literal) ? Array.from(first.literal) : []
  const bundled = letters.flatMap((letter) => [
    knownWord(`-${letter}`),
    ...(TAR_VALUED.includes(letter) ? others.splice(0, 1) : []),
  ])
  const given = readArguments(TAR, [...(letters.length > 0 ? bundled : [first]), ...others], { trusts: true })
  if (given === undefined) return UNKNOWN
  const { has, values } = given
  const archives = values('f', 'file')
  if (has('t', 'list', 'd', 'diff', 'compare')) return []
  if (!has('x', 'extract', 'get')) return written(archives)
  if (has('P', 'absolute-names', 'transform')) return UNKNOWN
  if (has('k', 'keep-old-files', 'skip-old-files', 'O', 'to-stdout')) return []
  const folders = values('C', 'directory')
  const [archive = '-'] = archives
  const [folder = '.'] = folders
  if (folders.length > 1 || archives.length > 1 || [...folders, ...archives].includes(undefined))
    return UNKNOWN
  // The names are others than those that the archive has, or it is not there to be read.
  return archive === '-' || has('strip-components')
    ? lost('deletes', folder)
    : lost('untars', archive, folder)
}

export function lossesOfSed(words: readonly ArgWord[]): readonly Loss[] {
  const given = readArguments(
    '-nErsuz -efl= quiet silent regexp-extended separate unbuffered null-data posix sandbox debug follow-symlinks expression= file= line-length= in-place=?',
    // The suffix of -i is joined, and is all that follows.
    words.map((word) => {
      const [, suffix] = /^-[nErsuz]*i([^]*)$/.exec(word.literal ?? '') ?? []
      return suffix === undefined ? word : knownWord(`--in-place=${suffix}`)
    }),
    { trusts: true },
  )
  if (given === undefined) return UNKNOWN
  const { operands, has, values } = given
  const scripts = values('e', 'expression')
  const hasScript = has('e', 'expression', 'f', 'file')
  if ((hasScript ? scripts : operands.slice(0, 1)).some((script) => script !== undefined && mayWrite(script)))
    return UNKNOWN
  if (!has('in-place')) return []
  return inPlace(hasScript ? operands : operands.slice(1), values('in-place').at(-1))
}

/** `w` and `s///w` write, `e` and `s///e` run something. */
function mayWrite(script: string): boolean {
  return !isPlainSedScript(script, true) && /w|(?<![a-z])[gpim\d]*e/i.test(script)
}

/** A file under the name with the suffix is lost as well. */
function inPlace(files: readonly (string | undefined)[], suffix = ''): readonly Loss[] {
  if (/[*/]/.test(suffix)) return UNKNOWN
  const copies = suffix === '' ? [] : files.map((path) => path && path + suffix)
  return each('overwrites', [...files, ...copies])
}

/** `-i` may have a suffix, and stands in a cluster: `-pi.bak -e …`. */
export function lossesInPlace(words: readonly ArgWord[]): readonly Loss[] {
  // A value follows these letters.
  const [suffix] = words.flatMap(({ prefix }) => /^-[^-eEmMIFrxdDV]*?i([^]*)$/.exec(prefix)?.[1] ?? [])
  if (suffix === undefined) return []
  const files = words.filter(
    ({ prefix }, at) => !prefix.startsWith('-') && !/^-\w*[eE]$/.test(words[at - 1]?.literal ?? ''),
  )
  return inPlace(
    files.map(({ literal }) => literal),
    suffix,
  )
}

const AWK =
  '-bcCnNOPrsStM -Fvf= field-separator= assign= file= traditional posix re-interval sandbox characters-as-bytes version help'

/** It has a shell run something other than a plain filter. */
const AWK_RUNS =
  /\bsystem\s*\(|"\s*\|&?\s*getline|\|&?\s*"(?!(?:sort|uniq|head|tail|cat|wc)(?: -[nrkut\d,]+)*")/

export function lossesOfAwk(words: readonly ArgWord[]): readonly Loss[] {
  const given = readArguments(AWK, words, { trusts: true })
  if (given === undefined) return UNKNOWN
  const texts = given.others.map(({ literal, text }) => literal ?? text)
  if (texts.some((text) => AWK_RUNS.test(text))) return UNKNOWN
  return texts.flatMap((text) =>
    Array.from(text.matchAll(/\bprintf?\b/g), ({ index }) =>
      lossesOfPrint(text.slice(index, index + MOST_STATEMENT_CHARS)),
    ).flat(),
  )
}

const MOST_STATEMENT_CHARS = 1_000

/** Outside of strings and parentheses a `>` is never a comparison here. */
function lossesOfPrint(statement: string): readonly Loss[] {
  const blank = (found: string): string => '_'.repeat(found.length)
  let bare = statement.replaceAll(/"(?:[^"\\]|\\.)*"/gs, blank)
  for (let before = ''; before !== bare;) {
    before = bare
    bare = bare.replaceAll(/\([^()]*\)/g, blank)
  }
  const to = /^[^;{}\n>]*>(?!>)\s*/.exec(bare)
  if (to === null) return []
  const [, file] = /^"([^"\\]*)"\s*(?:[;}\n#]|$)/.exec(statement.slice(to[0].length)) ?? []
  return lost('overwrites', file)
}
