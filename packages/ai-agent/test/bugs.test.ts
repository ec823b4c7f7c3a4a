/** Every row of "Bugs that come back everywhere" is closed by a test that names it: `bug 1: …` to `bug 30: …`. */
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { testTitles } from '../../../test/test-titles.ts'
import { SCRIPTS } from './scripts/all.ts'

const BUGS = 30
const titlesOf = (path: string): string[] => testTitles(readFileSync(join(import.meta.dirname, path), 'utf8'))

test('each of the thirty bugs has a test with its number', () => {
  const files = readdirSync(import.meta.dirname, { recursive: true, encoding: 'utf8' })
  // A conversation is data: it is a test as long as the one that plays them all is.
  const played = titlesOf('scripts/scripts.test.ts').includes('%s') ? SCRIPTS.map(({ name }) => name) : []
  const titles = [...files.filter((path) => path.endsWith('.test.ts')).flatMap(titlesOf), ...played]
  const named = new Set(titles.flatMap((title) => /^bug (\d+): /.exec(title)?.[1] ?? []).map(Number))
  const missing = Array.from({ length: BUGS }, (_, place) => place + 1).filter((number) => !named.has(number))
  expect(missing).toEqual([])
  // `bug 31: …` is a slip of the pen.
  expect(Math.max(...named)).toBe(BUGS)
})
