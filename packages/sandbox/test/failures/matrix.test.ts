import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, test } from 'vitest'

import { withoutComments } from '../../../../test/import-rules.ts'
import { testTitles } from '../../../../test/test-titles.ts'
import { matrix } from './matrix.ts'

const packages = join(import.meta.dirname, '../../..')
const table = readFileSync(join(import.meta.dirname, 'README.md'), 'utf8')

test.each(matrix)('$id has its tests, or says why not', ({ tests, cases = [], not }) => {
  expect(Object.keys(tests).length > 0 || (not ?? '').length > 40).toBe(true)
  const files = Object.keys(tests).map((file) => readFileSync(join(packages, file), 'utf8'))
  for (const [place, [file, titles]] of Object.entries(tests).entries()) {
    const there = testTitles(files[place] ?? '')
    for (const words of titles)
      expect(
        there.some((title) => title.includes(words)),
        `${file} has no test "${words}"`,
      ).toBe(true)
  }
  for (const name of cases)
    expect(
      files.some((text) => withoutComments(text).includes(name)),
      `no case "${name}"`,
    ).toBe(true)
})

test.each(matrix)('$id stands in the table as it is here', ({ inject, during, expected, tests, not }) => {
  const files = Object.keys(tests).map((file) => `\`${file}\``)
  expect(table).toContain(`| ${inject} | ${during} | ${expected} | ${files.join(', ')} | ${not ?? ''} |`)
})

test('every row has an id of its own', () => {
  expect(new Set(matrix.map(({ id }) => id)).size).toBe(matrix.length)
})
