/** Every row of "Bugs that come back everywhere" is closed by a test that names it: `bug 1: …` to `bug 30: …`. */
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const BUGS = 30

test('each of the thirty bugs has a test with its number', () => {
  const folder = import.meta.dirname
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((path) =>
    path.endsWith('.ts'),
  )
  const named = new Set(
    files
      .filter((path) => !path.endsWith('bugs.test.ts'))
      .flatMap((path) => [...readFileSync(join(folder, path), 'utf8').matchAll(/['`"]bug (\d+): /g)])
      .map(([, number]) => Number(number)),
  )
  const missing = Array.from({ length: BUGS }, (_, place) => place + 1).filter((number) => !named.has(number))
  expect(missing).toEqual([])
  // `bug 31: …` is a slip of the pen.
  expect(Math.max(...named)).toBe(BUGS)
})
