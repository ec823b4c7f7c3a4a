/** Display texts of a prompt's changes. */
import type { FileChange, FilesChanged } from '../chat/file-changes.ts'

/** Undefined: no file has known lines. */
export function linesOf(files: readonly FileChange[]): { added: number; removed: number } | undefined {
  const counted = files.flatMap(({ lines }) => lines ?? [])
  if (counted.length === 0) return undefined
  return counted.reduce((sum, { added, removed }) => ({
    added: sum.added + added,
    removed: sum.removed + removed,
  }))
}

/** `3 files changed`, or created or removed, if that is true of all. */
export function changedWords({ files, more, problem }: FilesChanged): string {
  if (problem !== undefined) return 'Too many files in the workspace to tell which ones changed'
  const kinds = new Set(files.map(({ kind }) => kind))
  const [only] = kinds
  const what = only !== undefined && kinds.size === 1 && more === 0 ? only : 'changed'
  const count = files.length + more
  return `${count.toLocaleString('en')} ${count === 1 ? 'file' : 'files'} ${what}`
}
