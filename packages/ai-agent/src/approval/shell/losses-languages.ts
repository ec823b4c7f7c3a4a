/**
 * What utilities lose whose words are a language of their own: the expression of `find`, the
 * letters of `tar`, the scripts of `sed` and `awk`.
 */
import { readArguments } from './arguments.ts'
import { PRIMARIES } from './find.ts'
import { type Loss, UNKNOWN, each, lost } from './loss.ts'
import type { Options } from './options.ts'
import { isPlainSedScript } from './sed.ts'
import { type ArgWord, knownWord } from './words.ts'

export function lossesOfDd(words: readonly ArgWord[]): readonly Loss[] {
  return words.flatMap(({ literal, prefix }) => {
    if (prefix.startsWith('of=')) return lost('overwrites', literal?.slice('of='.length))
    return /^(if|bs|ibs|obs|cbs|count|skip|seek|conv|iflag|oflag|status)=/.test(prefix) ? [] : UNKNOWN
  })
}

export function lossesOfFind(words: readonly ArgWord[]): readonly Loss[] {
  const losses: Loss[] = []
  for (let at = 0; at < words.length; at++) {
    const { literal } = words[at] ?? {}
    const name = literal ?? ''
    const arity = PRIMARIES.get(name) ?? (/^-newer[aBcm][aBcmt]$/.test(name) ? 1 : undefined)
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

const TAR: Options = {
  flags: 'cxtruAdzjJaZvpkOoSmhlwWsPB',
  valued: 'fCTXbHKNV',
  long: 'create extract get list append update catenate concatenate diff compare gzip bzip2 xz zstd lzma auto-compress verbose preserve-permissions keep-old-files skip-old-files keep-newer-files to-stdout no-same-owner no-same-permissions same-owner same-permissions touch dereference file= directory= files-from= exclude= exclude-from= exclude-vcs wildcards strip-components= one-file-system totals numeric-owner owner= group= mode= mtime= sort= format= no-recursion warning= anchored no-wildcards transform= absolute-names null',
}

export function lossesOfTar(words: readonly ArgWord[]): readonly Loss[] {
  const [first, ...others] = words
  // `tar xzf a.tar`: the letters' values follow in their order.
  const bundle = first?.literal !== undefined && /^[A-Za-z]+$/.test(first.literal) ? first.literal : undefined
  const letters = Array.from(bundle ?? '').filter((letter) => TAR.valued?.includes(letter) === true)
  const flags = Array.from(bundle ?? '').filter((letter) => !letters.includes(letter))
  const asOptions =
    bundle === undefined
      ? words
      : [
          ...flags.map((letter) => knownWord(`-${letter}`)),
          ...letters.flatMap((letter, at) => [knownWord(`-${letter}`), ...others.slice(at, at + 1)]),
          ...others.slice(letters.length),
        ]
  const given = readArguments(TAR, asOptions, true)
  if (given === undefined) return UNKNOWN
  const { has, values } = given
  const archives = values('f', 'file')
  if (has('t', 'list', 'd', 'diff', 'compare')) return []
  if (!has('x', 'extract', 'get'))
    return each(
      'overwrites',
      archives.filter((path) => path !== '-'),
    )
  if (has('P', 'absolute-names', 'transform')) return UNKNOWN
  if (has('k', 'keep-old-files', 'skip-old-files', 'O', 'to-stdout')) return []
  const folders = values('C', 'directory')
  const [archive] = archives
  const [folder = '.'] = folders
  if (folders.length > 1 || folders.includes(undefined) || (archives.length > 0 && archive === undefined))
    return UNKNOWN
  // The names are others than those that the archive has, or it is not there to be read.
  if (archive === undefined || archive === '-' || has('strip-components')) return lost('deletes', folder)
  return lost('untars', archive, folder)
}

export function lossesOfSed(words: readonly ArgWord[]): readonly Loss[] {
  const given = readArguments(
    {
      // The suffix of -i is joined, and then all that follows.
      flags: 'nErsuz',
      valued: 'efl',
      long: 'quiet silent regexp-extended separate unbuffered null-data posix sandbox debug follow-symlinks expression= file= line-length= in-place=?',
    },
    words.map((word) =>
      /^-[nErsuz]*i/.test(word.literal ?? '')
        ? { ...word, literal: '--in-place', prefix: '--in-place' }
        : word,
    ),
    true,
  )
  if (given === undefined) return UNKNOWN
  const { operands, has, values } = given
  const scripts = has('e', 'expression')
    ? values('e', 'expression')
    : has('f', 'file')
      ? []
      : operands.slice(0, 1)
  if (scripts.some((script) => script !== undefined && !isPlainSedScript(script) && /w/i.test(script)))
    return UNKNOWN
  if (!has('in-place')) return []
  return each('overwrites', has('e', 'expression', 'f', 'file') ? operands : operands.slice(1))
}

/** `-i` may have a suffix, and stands in a cluster: `-pi.bak -e …`. */
export function lossesInPlace(words: readonly ArgWord[]): readonly Loss[] {
  if (!words.some(({ prefix }) => /^-[a-hj-zA-Z0]*i/.test(prefix))) return []
  const files = words.filter(
    ({ prefix }, at) => !prefix.startsWith('-') && !/^-\w*[eE]$/.test(words[at - 1]?.literal ?? ''),
  )
  return each(
    'overwrites',
    files.map(({ literal }) => literal),
  )
}

export function lossesOfAwk(words: readonly ArgWord[]): readonly Loss[] {
  if (words.some(({ literal }) => /^(-[iodp]$|-iinplace|--(in|pr|dump))/.test(literal ?? ''))) return UNKNOWN
  // Behind `print` a `>` is never a comparison, unless it is in parentheses.
  const written = words.flatMap(({ text }) => [
    ...text.matchAll(/\bprintf?\b(?:"(?:[^"\\]|\\.)*"|\([^()]*\)|[^;{}\n>"(])*>(>?)\s*("([^"\\$]*)")?/g),
  ])
  return written.flatMap(([, appends, known, file]) =>
    appends === '>' ? [] : lost('overwrites', known === undefined ? undefined : file),
  )
}
