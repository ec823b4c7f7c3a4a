/** Comments of a file, and the rule about their first word. */
import { withoutComments } from './import-rules.ts'
import type { SourceFile } from './source-files.ts'

/** A comment without its marks. */
interface Comment {
  /** Line of the file on which its text begins, from 1. */
  line: number
  lines: string[]
}

export const FIRST_WORD = /^(?:What|Who|Whose|Whom|Whoever|How|Where|Whether|Of|Behind|Beside|As)\b/

/** Blocks, and consecutive lines that hold only a `//` comment. */
export function commentsOf({ text }: SourceFile): Comment[] {
  const code = withoutComments(text).split('\n')
  const found: Comment[] = [{ line: 1, lines: [] }]
  for (const [at, line] of text.split('\n').entries()) {
    const before = (code[at] ?? '').trimEnd()
    const comment = line.slice(before.length)
    const words = comment.replace(/^\s*(?:\/\/|\/\*+|\*\/?)\s*/, '').replace(/\s*\*\/\s*$/, '')
    if (before !== '' || comment.trim() === '' || /^\s*\/\*/.test(comment)) found.push({ line: 0, lines: [] })
    const last = found.at(-1)
    if (words.trim() === '' || last === undefined) continue
    if (last.lines.length === 0) last.line = at + 1
    last.lines.push(words)
  }
  return found.filter(({ lines }) => lines.length > 0)
}

/** Comments that begin with a question word or a preposition. */
export function firstWordProblems(file: SourceFile): string[] {
  return commentsOf(file).flatMap(({ line, lines: [first = ''] }) => {
    const word = FIRST_WORD.exec(first)?.[0]
    return word === undefined
      ? []
      : [`${file.path}:${line}: a comment begins with “${word}”; begin with a noun or a verb`]
  })
}
