import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, test } from 'vitest'

import { matrix } from './matrix.ts'

const packages = join(import.meta.dirname, '../../..')
const table = readFileSync(join(import.meta.dirname, 'README.md'), 'utf8')

test.each(matrix)('$id has its tests, or says why not', ({ tests, not }) => {
  expect(Object.keys(tests).length > 0 || (not ?? '').length > 40).toBe(true)
  for (const [file, titles] of Object.entries(tests)) {
    const text = readFileSync(join(packages, file), 'utf8')
    for (const title of titles) expect(text, `${file} has no test "${title}"`).toContain(title)
  }
})

test.each(matrix)('$id stands in the table as it is here', ({ inject, during, expected, tests, not }) => {
  const files = Object.keys(tests).map((file) => `\`${file}\``)
  expect(table).toContain(`| ${inject} | ${during} | ${expected} | ${files.join(', ')} | ${not ?? ''} |`)
})

test('every row has an id of its own', () => {
  expect(new Set(matrix.map(({ id }) => id)).size).toBe(matrix.length)
})
