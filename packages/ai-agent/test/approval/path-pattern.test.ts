import fc from 'fast-check'
import { expect, test } from 'vitest'
import { absolutePath } from '../../src/approval/files.ts'
import { concerns, matchProblem } from '../../src/approval/match.ts'
import { certainlyMatches, patternProblem } from '../../src/approval/shell/pattern.ts'
import type { ArgWord } from '../../src/approval/shell/words.ts'

/** A rule about files against a call that reads this one. */
function matchesPath(file: string, path: string): boolean {
  const subject = { type: 'file', access: 'read', path, below: false } as const
  const part = { text: path, subject, usual: 'read', because: 'is read' } as const
  return concerns({ file }, part, { tool: 'read_file', kind: 'read', readOnly: true, asks: [] }) === 'yes'
}

/** The meaning of a pattern, as a regular expression: right, and for some patterns endless. */
function reference(pattern: string, path: string): boolean {
  const absolute = pattern.startsWith('/') ? pattern : `/workspace/${pattern}`
  const source = absolute.replaceAll(/\/\*\*$|\/\*\*\/|\*\*|[*?]|[.+^${}()|[\]\\]/g, (token) => {
    if (token === '/**') return '(?:/.*)?'
    if (token === '/**/') return '/(?:.*/)?'
    if (token === '**') return '.*'
    if (token === '*') return '[^/]*'
    return token === '?' ? '[^/]' : `\\${token}`
  })
  return new RegExp(`^${source}$`, 's').test(path)
}

test('means the same as the regular expression', () => {
  const text = (...parts: string[]) =>
    fc.array(fc.constantFrom(...parts), { maxLength: 7 }).map((all) => all.join(''))
  let matched = 0
  fc.assert(
    fc.property(
      text('/', 'a', 'b', '*', '**', '?', '/**', '/**/', '.', '\n', '['),
      text('/', 'a', 'b', 'ab', '.', '/a', '\n', '['),
      fc.boolean(),
      (pattern, path, inWorkspace) => {
        const whole = absolutePath(inWorkspace ? `/workspace/${path}` : `/${path}`)
        const expected = reference(pattern, whole)
        if (expected) matched++
        expect(matchesPath(pattern, whole)).toBe(expected)
      },
    ),
    { numRuns: 20_000 },
  )
  expect(matched, 'both answers are drawn').toBeGreaterThan(500)
})

test('X-A1 a pattern on which a regular expression never ends is compared at once', () => {
  const path = `/workspace/${'a'.repeat(4_000)}b`
  expect(matchesPath(`${'**a'.repeat(600)}**c`, path)).toBe(false)
  expect(matchesPath(`${'**a'.repeat(600)}**b`, path)).toBe(true)
  expect(matchesPath(`${'*a'.repeat(900)}*/**/c`, path)).toBe(false)
})

test('X-A1 a rule has a bounded number of wildcards', () => {
  expect(matchProblem({ file: 'a/**'.repeat(40) })).toBe('has 40 wildcards; 32 may be in it')
  expect(matchProblem({ file: '?'.repeat(32) })).toBeUndefined()
  expect(patternProblem(`make ${'* '.repeat(17)}`)).toBe('has 17 *; 16 may be in it')
  expect(patternProblem(`make ${'a '.repeat(200)}`)).toBe('has 201 words; 200 may be in it')
  expect(patternProblem(`make ${'* '.repeat(16)}`)).toBeUndefined()
})

test('X-A1 a pattern of words takes one pass for each of its words', () => {
  const word = (text: string): ArgWord => ({
    text,
    literal: text,
    prefix: text,
    loose: false,
    several: false,
  })
  const words = [word('make'), ...Array.from({ length: 60_000 }, () => word('a'))]
  expect(certainlyMatches(`make ${'* a '.repeat(16)} b`, words)).toBe(false)
  expect(certainlyMatches(`make ${'* a '.repeat(16)}`, words)).toBe(true)
})
