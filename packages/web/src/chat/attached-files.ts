/**
 * Files that a message names for the agent: those attached to it, each on a line of its own at its
 * end, and paths of the workspace in its words. All pure.
 */

const ROOT = '/workspace/'
const LINE = 'Attached file: '

/** `paths` are relative to the workspace. */
export function withAttachedFiles(words: string, paths: readonly string[]): string {
  const lines = paths.map((path) => `${LINE}${ROOT}${path}`).join('\n')
  return [words, lines].filter((part) => part !== '').join('\n\n')
}

/** Reverses `withAttachedFiles`. */
export function readAttachedFiles(text: string): { words: string; paths: string[] } {
  const lines = text.split('\n')
  const paths: string[] = []
  for (let line = lines.at(-1); line?.startsWith(LINE + ROOT) === true; line = lines.at(-1)) {
    paths.unshift(line.slice(LINE.length + ROOT.length))
    lines.pop()
  }
  if (paths.length === 0) return { words: text, paths }
  return { words: lines.join('\n').trimEnd(), paths }
}

/** A path as it is written into a message. */
export function pathInWords(path: string): string {
  return /^[^\s"'`<>|;&?*(){}]+$/.test(path) ? ROOT + path : `"${ROOT}${path}"`
}

interface WordsPart {
  text: string
  /** Where it begins. */
  at: number
  /** Relative to the workspace. */
  path?: string
}

/** The words in pieces; those that are paths of the workspace say which. */
export function partsWithPaths(words: string): WordsPart[] {
  const parts: WordsPart[] = []
  let from = 0
  for (const found of words.matchAll(
    /"\/workspace\/([^"\n]+)"|(?<![^\s(])\/workspace\/([^\s"'`<>|;&?*(){}]+)/g,
  )) {
    // The end of a sentence is none of a name.
    const plain = found[2]?.replace(/[.,:!]+$/, '')
    const path = found[1] ?? plain
    if (path === undefined || path === '' || path.split('/').includes('..')) continue
    const text = found[1] === undefined ? ROOT + path : found[0]
    if (found.index > from) parts.push({ text: words.slice(from, found.index), at: from })
    parts.push({ text, at: found.index, path })
    from = found.index + text.length
  }
  if (from < words.length) parts.push({ text: words.slice(from), at: from })
  return parts
}
