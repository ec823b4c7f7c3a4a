/**
 * Which folder of a package may name which other one: by an import, of a type as well. A table is read from the ground
 * up: a place names only places above its own line, so that no circle can be written into it.
 */
import { posix } from 'node:path'

import { specifiers } from './import-rules.ts'
import type { SourceFile } from './source-files.ts'

export interface FolderTable {
  /** The folder whose folders these are, with a `/` at its end. */
  root: string
  /** A folder, a file at the root by its name, or `.` for the other files at the root; with the places it may name. */
  allowed: Readonly<Record<string, readonly string[]>>
  /** Arrows that are still there and must go, as `from → to`. */
  remaining?: readonly string[]
}

export interface Arrow {
  from: string
  to: string
  /** Which file imports which. */
  why: string
}

/**
 * Tables from text: an unindented line names a root, an indented one a place, `:` and the places that it may name, with
 * those that remain behind `↑`; what is indented further belongs to the line before.
 */
export function readTables(text: string): FolderTable[] {
  return text.split(/\n(?=\S)/).flatMap((block) => {
    const [root = '', ...lines] = block.trim().split(/\n {2}(?=\S)/)
    if (root === '') return []
    const rows = lines.map((line) => {
      const [place = '', names = ''] = line.split(':')
      const [below = [], above = []] = names.split('↑').map((part) => part.match(/\S+/g) ?? [])
      return { place, below, above }
    })
    return [
      {
        root,
        allowed: Object.fromEntries(rows.map(({ place, below }) => [place, below])),
        remaining: rows.flatMap(({ place, above }) => above.map((to) => `${place} → ${to}`)),
      },
    ]
  })
}

const WHAT_TO_DO =
  'move the name down to where both may see it, hand it in as an argument, or move the file to its user'

function placeOf(path: string, { root, allowed }: FolderTable): string {
  const [first = '', ...rest] = path.slice(root.length).split('/')
  return rest.length > 0 || first in allowed ? first : '.'
}

/** Every import of the package that leads from one place to another. */
export function arrowsOf(files: readonly SourceFile[], table: FolderTable): Arrow[] {
  return files
    .filter(({ path }) => path.startsWith(table.root) && /\.tsx?$/.test(path))
    .flatMap(({ path, text }) =>
      specifiers(text)
        .filter((specifier) => specifier.startsWith('.'))
        .map((specifier) => posix.join(posix.dirname(path), specifier))
        .map((target) => ({
          from: placeOf(path, table),
          to: placeOf(target, table),
          why: `${path} imports ${target}`,
        }))
        .filter(({ from, to }) => from !== to),
    )
}

/** Imports that the table does not allow. */
export function arrowProblems(arrows: readonly Arrow[], { allowed, remaining = [] }: FolderTable): string[] {
  return arrows.flatMap(({ from, to, why }) => {
    const places = allowed[from]
    if (places === undefined) return [`${why}: ${from} has no line in test/arrow-tables.ts; give it one`]
    if (places.includes(to) || remaining.includes(`${from} → ${to}`)) return []
    return [`${why}: ${from} may name only ${places.join(', ') || 'itself'}; ${WHAT_TO_DO}`]
  })
}

/** Errors in the table itself: an arrow that points down (a cycle), or one that no file needs. */
export function tableProblems(arrows: readonly Arrow[], { allowed, remaining = [] }: FolderTable): string[] {
  const places = Object.keys(allowed)
  const found = new Set(arrows.map(({ from, to }) => `${from} → ${to}`))
  const listed = Object.entries(allowed).flatMap(([from, names]) => names.map((to) => ({ from, to })))
  const down = listed
    .filter(({ from, to }) => !places.slice(0, places.indexOf(from)).includes(to))
    .map(({ from, to }) => `${from} → ${to}: ${to} must stand above ${from}; ${WHAT_TO_DO}`)
  const unused = [...listed.map(({ from, to }) => `${from} → ${to}`), ...remaining]
    .filter((arrow) => !found.has(arrow))
    .map((arrow) => `${arrow}: no file needs it any more; take it out of the table`)
  const needless = places
    .flatMap((to, at) => places.slice(at + 1).map((from) => `${from} → ${to}`))
    .filter((arrow) => remaining.includes(arrow))
    .map((arrow) => `${arrow}: points down; it belongs to those that are allowed`)
  return [...down, ...unused, ...needless]
}
