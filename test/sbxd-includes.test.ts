/** The folders of sbxd point one way: nothing below names anything above, in its includes or by a name that it uses. */
import { describe, expect, test } from 'vitest'

import { type Arrow, arrowsOf, placeOf, ROOT } from './sbxd-includes.ts'
import { read, repositoryFiles, type SourceFile } from './source-files.ts'

/** From the ground floor up: each place with those that its files may name, plus the ground. */
const ALLOWED: Record<string, readonly string[]> = {
  base: [],
  walls: [],
  wire: [],
  disk: ['wire'],
  files: ['wire', 'disk'],
  sessions: ['wire', 'disk', 'files'],
  commands: ['walls', 'wire', 'disk', 'files', 'sessions'],
  connections: ['wire'],
  egress: ['wire', 'connections'],
  ports: ['wire', 'connections'],
  pod: ['wire'],
  loop: ['wire', 'disk', 'files', 'commands', 'connections', 'egress', 'pod'],
  main: [
    'walls',
    'wire',
    'disk',
    'files',
    'sessions',
    'commands',
    'connections',
    'egress',
    'ports',
    'pod',
    'loop',
  ],
}

const WHAT_TO_DO =
  'move what it needs down to where both may see it, let loop.c call both, or let main.c hand it in: a frame by the ' +
  'table of handlers, anything else as a hook or an argument'

function circleProblems(arrows: readonly Arrow[]): string[] {
  const next = Map.groupBy(arrows, ({ from }) => from)
  const reaches = (from: string, to: string, seen = new Set<string>()): boolean =>
    (next.get(from) ?? []).some((arrow) => {
      if (arrow.to === to) return true
      if (seen.has(arrow.to)) return false
      return reaches(arrow.to, to, seen.add(arrow.to))
    })
  const firsts = new Map(arrows.map((arrow) => [`${arrow.from} ${arrow.to}`, arrow]))
  return [...firsts.values()]
    .filter(({ from, to }) => reaches(to, from))
    .map(({ from, to, why }) => `${why}, and ${to}/ leads back to ${from}/: ${WHAT_TO_DO}`)
}

function arrowProblems(arrows: readonly Arrow[]): string[] {
  return arrows.flatMap(({ from, to, why }) => {
    const allowed = ALLOWED[from]
    if (allowed === undefined)
      return [`${why}: ${from}/ has no place in ALLOWED of test/sbxd-includes.test.ts; give it one`]
    if (to === 'base' || allowed.includes(to)) return []
    return [`${why}: ${from}/ may name only ${['base', ...allowed].join(', ')}; ${WHAT_TO_DO}`]
  })
}

function headerProblems(files: readonly SourceFile[]): string[] {
  const headers = files.map(({ path }) => path).filter((path) => path.endsWith('.h'))
  return Object.entries(Object.groupBy(headers, placeOf)).flatMap(([place, found = []]) =>
    found.length > 1
      ? [`${found.join(', ')}: one header for ${place}/; put what they declare into one of them`]
      : [],
  )
}

/** A file of sbxd as the rules see it. */
const file = (path: string, text: string): SourceFile => ({ path: ROOT + path, text })

describe('the sources of sbxd', () => {
  const files = repositoryFiles()
    .filter((path) => path.startsWith(ROOT) && /\.[ch]$/.test(path))
    .map(read)
  const arrows = arrowsOf(files)

  test('are seen by these rules', () => {
    const found = new Set(arrows.map(({ from, to }) => `${from} → ${to}`))
    const places = Object.keys(ALLOWED)
    expect(places.filter((place) => !files.some(({ path }) => placeOf(path) === place))).toEqual([])
    const unused = places.flatMap((from) =>
      (ALLOWED[from] ?? []).map((to) => `${from} → ${to}`).filter((arrow) => !found.has(arrow)),
    )
    expect(unused, 'no file needs these arrows any more: take them out of ALLOWED').toEqual([])
  })

  test('point from folder to folder only as allowed', () => expect(arrowProblems(arrows)).toEqual([]))

  test('have no circle', () => expect(circleProblems(arrows)).toEqual([]))

  test('have one header a folder', () => expect(headerProblems(files)).toEqual([]))
})

describe('the rules find', () => {
  const low = file('wire/out.c', '#include "wire.h"\nvoid frame_out(int type)\n{\n}\nstatic int queue;\n')
  const high = file('commands/start.c', 'int commands_start(const int *p) { return 1; }\nint commands[2];\n')

  test.each([
    ['an include', '#include "../commands/commands.h"'],
    ['a call of what was declared by hand', 'int g(void) { return commands_start(0); }'],
    ['a function that is only declared', 'int commands_start(const int *p);'],
    ['a variable of another folder', 'extern int commands[2];\nint g(void) { return *commands; }'],
  ])('an arrow that is not allowed: %s', (_, text) => {
    const problems = arrowProblems(arrowsOf([low, high, file('wire/in.c', text)]))
    expect(problems).toHaveLength(1)
    expect(problems[0]).toContain('wire/ may name only base')
  })

  test.each([
    ['a comment', '/* commands_start() */ // commands_start()'],
    ['a string', 'const char *g(void) { return "commands_start()"; }'],
    ['a member', 'int g(struct s *s) { return s->commands_start(0) + s->in.commands_start(0); }'],
    ['a name of its own', 'static int commands_start(void)\n{\n}\nint g(void) { return commands_start(); }'],
    ['the folder itself', 'void g(void) { frame_out(1); }'],
  ])('no arrow in %s', (_, text) => expect(arrowsOf([low, high, file('wire/in.c', text)])).toEqual([]))

  test('a folder without a place', () => {
    const [problem] = arrowProblems(arrowsOf([low, file('new/a.c', 'void g(void) { frame_out(1); }')]))
    expect(problem).toContain('has no place')
  })

  test('a circle, also of headers alone', () => {
    const circle = [
      file('disk/disk.h', '#include "../files/files.h"'),
      file('files/files.h', '#include "../sessions/sessions.h"'),
      file('sessions/sessions.h', '#include "../disk/disk.h"'),
      file('loop.c', '#include "disk/disk.h"'),
    ]
    expect(circleProblems(arrowsOf(circle))).toHaveLength(3)
    expect(circleProblems(arrowsOf(circle.slice(1)))).toEqual([])
  })

  test('a second header', () => {
    expect(
      headerProblems([file('wire/wire.h', ''), file('wire/protocol.h', ''), file('loop.h', '')]),
    ).toHaveLength(1)
  })
})
