/** A patch (`diff -u`, `git diff`) as rows: files, places, lines. */
import type { DiffLine } from '@sandlot/shared/transcript/line-diff'

type PatchRow =
  | { type: 'file'; path: string; added: number; removed: number }
  | { type: 'place'; text: string }
  | DiffLine

/** Empty: the text is no patch. */
export function patchRows(text: string): PatchRow[] {
  const rows: PatchRow[] = []
  let file: Extract<PatchRow, { type: 'file' }> | undefined
  let oldNo = 0
  let newNo = 0
  let left = { old: 0, new: 0 }
  // Lines of a patch from Windows end with CR LF; elsewhere a CR is a part of the line.
  for (const line of text.split(/^[^\n]*\r\n/.test(text) ? /\r?\n/ : '\n')) {
    const inHunk = left.old > 0 || left.new > 0
    const place = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(.*)$/.exec(line)
    if (!inHunk && place !== null) {
      const [, oldAt = '0', olds = '1', newAt = '0', news = '1', words = ''] = place
      oldNo = Number(oldAt)
      newNo = Number(newAt)
      left = { old: Number(olds), new: Number(news) }
      rows.push({ type: 'place', text: `Line ${newAt}${words.trim() === '' ? '' : ` · ${words.trim()}`}` })
    } else if (inHunk && line.startsWith('+')) {
      left.new--
      if (file !== undefined) file.added++
      rows.push({ type: 'add', text: line.slice(1), newNo: newNo++ })
    } else if (inHunk && line.startsWith('-')) {
      left.old--
      if (file !== undefined) file.removed++
      rows.push({ type: 'del', text: line.slice(1), oldNo: oldNo++ })
    } else if (inHunk && (line.startsWith(' ') || line === '')) {
      left.old--
      left.new--
      rows.push({ type: 'same', text: line.slice(1), oldNo: oldNo++, newNo: newNo++ })
    } else if (line.startsWith('+++ ') || line.startsWith('diff --git ')) {
      const path = pathIn(line)
      // `diff --git` names it first, and stands alone for a file that is only renamed.
      if (file?.path === path) continue
      if (file !== undefined && path === undefined) continue
      file = { type: 'file', path: path ?? 'a file', added: 0, removed: 0 }
      rows.push(file)
    }
  }
  return rows.some(({ type }) => type === 'place' || type === 'file') ? rows : []
}

/** Undefined: `/dev/null`, of a file that is deleted. */
function pathIn(line: string): string | undefined {
  const path = line.startsWith('+++ ')
    ? line.slice(4).replace(/\t.*$/, '').replace(/^b\//, '')
    : (/ b\/(.+)$/.exec(line)?.[1] ?? '')
  return path === '/dev/null' || path === '' ? undefined : path
}
