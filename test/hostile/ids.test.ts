import { existsSync, readFileSync } from 'node:fs'

import { expect, test } from 'vitest'

import { testTitles } from '../test-titles.ts'
import { rows as control } from './control.ts'
import { rows as escape } from './escape.ts'
import { rows as exhaustion } from './exhaustion.ts'
import { rows as files } from './files.ts'
import { DECLARED, ELSEWHERE, IDS } from './ids.ts'
import { rows as output } from './output.ts'
import { rows as secrets } from './secrets.ts'

const rows = [...escape, ...control, ...exhaustion, ...files, ...secrets, ...output]
const played = new Set(rows.map(({ id }) => id))

test('every id of the table has a row, a test elsewhere or a declared reason, and only one of these', () => {
  const found = Object.fromEntries(
    IDS.map((id) => [id, [played.has(id), id in ELSEWHERE, id in DECLARED].filter(Boolean).length]),
  )
  expect(found).toEqual(Object.fromEntries(IDS.map((id) => [id, 1])))
})

test('every row has an id of the table, or one of ours', () => {
  expect([...played].filter((id) => !IDS.includes(id) && !id.startsWith('X-') && id !== 'R08')).toEqual([])
})

test('no two rows are the same, and every file that is named is there', () => {
  const names = rows.map(({ id, what }) => `${id} ${what}`)
  expect(names.filter((name, place) => names.indexOf(name) !== place)).toEqual([])
  expect(Object.values(ELSEWHERE).filter((file) => !existsSync(file))).toEqual([])
})

test('the file that is named for an id has a test whose title, or whose group’s, names it', () => {
  const silent = Object.entries(ELSEWHERE).filter(([id, file]) => {
    const names = new RegExp(`\\b${id}\\b`)
    return !testTitles(readFileSync(file, 'utf8')).some((title) => names.test(title))
  })
  expect(silent).toEqual([])
})

test('the README says how many there are of each class', () => {
  const readme = readFileSync(new URL('README.md', import.meta.url), 'utf8')
  const rowsOfTable = readme.matchAll(/^\| ([A-Z]) [a-z]+ \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$/gm)
  const said = Object.fromEntries(
    Array.from(rowsOfTable, ([, letter, ...counts]) => [letter, counts.map(Number)]),
  )
  const classes = [...new Set(IDS.map((id) => id.slice(0, 1)))]
  const counted = classes.map((letter) => {
    const ids = IDS.filter((id) => id.startsWith(letter))
    const count = (holds: (id: string) => boolean): number => ids.filter(holds).length
    return [
      letter,
      [
        ids.length,
        count((id) => played.has(id)),
        count((id) => id in ELSEWHERE),
        count((id) => id in DECLARED),
      ],
    ]
  })
  expect(said).toEqual(Object.fromEntries(counted))
})
