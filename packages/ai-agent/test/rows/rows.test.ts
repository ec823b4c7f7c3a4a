/** Every row of what the agent must do, and of the protocol, has a test, and that test is there. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ACP_ROWS } from './acp-rows.ts'
import { LOOP_ROWS } from './loop-rows.ts'

const ROOT = join(import.meta.dirname, '../../../..')

const rows = Object.entries({ ...LOOP_ROWS, ...ACP_ROWS }).flatMap(([section, named]) =>
  Object.entries(named).map(([row, tests]) => ({ row: `${section}: ${row}`, tests })),
)

/** The title as the first argument of a test, or as a script's name. Formatting may have put it on a line of its own. */
function isTitled(text: string, title: string): boolean {
  return [`'${title}'`, `"${title}"`, `\`${title}\``].some((quoted) => {
    for (let at = text.indexOf(quoted); at >= 0; at = text.indexOf(quoted, at + 1))
      if (/(?:\(|name:)\s*$/.test(text.slice(Math.max(0, at - 200), at))) return true
    return false
  })
}

test('each row names a test that exists', () => {
  const files = new Map<string, string>()
  const missing = rows.flatMap(({ row, tests }) => {
    if (tests.length === 0) return [`${row}: no test`]
    return tests.flatMap((named) => {
      const [file = '', title = ''] = named.split(' :: ')
      const text = files.get(file) ?? readFileSync(join(ROOT, file), 'utf8')
      files.set(file, text)
      return isTitled(text, title) ? [] : [`${row}: ${named}`]
    })
  })
  expect(missing).toEqual([])
})

test('no row was lost', () => {
  const count = (sections: typeof LOOP_ROWS): Record<string, number> =>
    Object.fromEntries(
      Object.entries(sections).map(([section, named]) => [section, Object.keys(named).length]),
    )
  expect(count(LOOP_ROWS)).toEqual({
    'prompt and continuation': 13,
    'scheduling and execution': 27,
    registry: 9,
    'model client': 12,
    'durability and replay': 11,
    limits: 4,
  })
  expect(count(ACP_ROWS)).toEqual({
    methods: 18,
    updates: 10,
    'calls, permission, ends': 4,
    transports: 4,
    'what bites': 8,
    'editors and foreign clients': 7,
  })
})

test('a test that vanished, or only stands in a text, is missed', () => {
  expect(isTitled(`test('a thing', () => {})`, 'a thing')).toBe(true)
  expect(isTitled(`])(\n  '%s: a thing',`, '%s: a thing')).toBe(true)
  expect(isTitled(`// 'a thing' was here`, 'a thing')).toBe(false)
  expect(isTitled(`test('another thing')`, 'a thing')).toBe(false)
})
