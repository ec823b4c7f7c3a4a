/** The sources of sbxd as a graph: which file, and which folder, names which other one. */
import { posix } from 'node:path'
import type { SourceFile } from './source-files.ts'

export const ROOT = 'docker/sandbox/src/'

/** The files at the root that are a floor of their own; the others there are the ground. */
const FLOORS = new Set(['loop', 'main'])

/** Included by sbxd and by the library of a session's bash. */
const AGREED = 'docker/sandbox/session/session.h'

export function placeOf(path: string): string {
  const [first = '', ...rest] = path.slice(ROOT.length).split('/')
  const name = first.replace(/\.[ch]$/, '')
  return rest.length > 0 ? first : FLOORS.has(name) ? name : 'base'
}

/** Without comments and the text of strings; the names of included files stay. */
function code({ text }: SourceFile): string {
  return text.replace(
    /\/\*[\s\S]*?\*\/|\/\/.*|^#include.*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'/gm,
    (found) => (found.startsWith('#') ? found : found.startsWith('/') ? ' ' : '""'),
  )
}

function includesOf(file: SourceFile): string[] {
  return [...code(file).matchAll(/^#include "([^"]+)"/gm)].map(([, name]) =>
    posix.join(posix.dirname(file.path), name ?? ''),
  )
}

/** Definitions at the top level of a .c file: functions with a body, and variables. */
function definitionsOf(file: SourceFile): { name: string; isStatic: boolean }[] {
  const found = code(file).matchAll(
    /^(?!extern\b|typedef\b|return\b|#)([A-Za-z_][\w \t*]*?[ \t*])(\w+)(?:\([^;{}]*\)\s*\{|(?:\[[^\]]*\])*\s*[=;,])/gm,
  )
  return [...found].map(([, before, name]) => ({
    name: name ?? '',
    isStatic: /\bstatic\b/.test(before ?? ''),
  }))
}

/** A call, a declaration of a function, or a variable that is declared as another file's. A member is no name. */
const NAMED = /(?<![\w.]|->)([A-Za-z_]\w*)\s*\(|^extern\b[^;]*?(\w+)(?:\[[^\]]*\])*;/gm

export interface Arrow {
  from: string
  to: string
  file: string
  target: string
  why: string
}

/** Which file names which other one: by an include, or by a name that another file defines, however declared. */
export function namesOf(files: readonly SourceFile[]): Arrow[] {
  const definedIn = new Map<string, string>()
  for (const file of files.filter(({ path }) => path.endsWith('.c')))
    for (const { name, isStatic } of definitionsOf(file)) if (!isStatic) definedIn.set(name, file.path)
  return files.flatMap((file) => {
    const arrow = (target: string, why: string): Arrow => ({
      from: placeOf(file.path),
      to: placeOf(target),
      file: file.path,
      target,
      why: `${file.path} ${why}`,
    })
    const own = new Set(definitionsOf(file).map(({ name }) => name))
    const included = includesOf(file)
      .filter((path) => path !== AGREED)
      .map((path) => arrow(path, `includes ${path}`))
    const names = new Set(
      [...code(file).matchAll(NAMED)].map(([, called, declared]) => called ?? declared ?? ''),
    )
    const used = [...names].flatMap((name) => {
      const path = own.has(name) ? undefined : definedIn.get(name)
      return path === undefined ? [] : [arrow(path, `names ${name} of ${path}`)]
    })
    return [...included, ...used]
  })
}

/** The same between places. */
export function arrowsOf(files: readonly SourceFile[]): Arrow[] {
  return namesOf(files).filter(({ from, to }) => from !== to)
}
