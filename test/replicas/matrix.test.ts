import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ROWS } from './matrix.ts'

test('docs/growing.md says of each failure what follows', () => {
  const page = readFileSync(join(import.meta.dirname, '../../docs/growing.md'), 'utf8')
  const table = page.slice(page.indexOf('| victim |'), page.indexOf('## Figures'))
  const rows = [...table.matchAll(/^\| ([^|]+) \| [^|]+ \|$/gm)].map(([, victim]) => victim)
  expect(rows.slice(2)).toEqual(ROWS.map(({ victim }) => victim))
})
