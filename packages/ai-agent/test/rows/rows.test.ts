/** Every row of what the agent must do, and of the protocol, has a test, and that test is there. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { SCRIPTS } from '../scripts/all.ts'
import { ACP_ROWS } from './acp-rows.ts'
import { LOOP_ROWS } from './loop-rows.ts'

const ROOT = join(import.meta.dirname, '../../../..')
/** Conversations whose titles stand in data; they are tests where the campaign plays them. */
const SCRIPT_FILE = /^packages\/ai-agent\/test\/scripts\/(?!.*\.test\.ts$)/
const PLAYED = new Set(SCRIPTS.map(({ name }) => name))

const rows = Object.entries({ ...LOOP_ROWS, ...ACP_ROWS }).flatMap(([section, named]) =>
  Object.entries(named).map(([row, tests]) => [`${section}: ${row}`, tests] as const),
)

/** The title as the first argument of a test that runs. Formatting may have put it on a line of its own. */
function isTitled(text: string, title: string): boolean {
  return [`'${title}'`, `"${title}"`, `\`${title}\``].some((quoted) => {
    for (let at = text.indexOf(quoted); at >= 0; at = text.indexOf(quoted, at + 1)) {
      const before = text.slice(0, at)
      if (/\(\s*$/.test(before) && !isLeftOut(before)) return true
    }
    return false
  })
}

/** The test that this is the beginning of, or what it stands in, is skipped or still to be written. */
function isLeftOut(before: string): boolean {
  const calls = [...before.matchAll(/\b(test|it|describe)((?:\.\w+)*)\s*[(<]/g)]
  const leaves = (how = ''): boolean => /\.(?:skip|todo)\b/.test(how)
  return leaves(calls.at(-1)?.[2]) || calls.some(([, what, how]) => what === 'describe' && leaves(how))
}

const files = new Map<string, string>()

function isThere(named: string): boolean {
  const [file = '', title = ''] = named.split(' :: ')
  if (SCRIPT_FILE.test(file)) return PLAYED.has(title)
  const text = files.get(file) ?? readFileSync(join(ROOT, file), 'utf8')
  files.set(file, text)
  return isTitled(text, title)
}

describe('is shown by tests that exist', () => {
  test.each(rows)('%s', (_, tests) => {
    expect(tests.length).toBeGreaterThan(0)
    expect(tests.filter((named) => !isThere(named))).toEqual([])
  })
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
    updates: 11,
    'calls, permission, ends': 4,
    transports: 4,
    'what bites': 9,
    'editors and foreign clients': 7,
  })
})

test('a test that vanished, or only stands in a text, is missed', () => {
  expect(isTitled(`test('a thing', () => {})`, 'a thing')).toBe(true)
  expect(isTitled(`])(\n  '%s: a thing',`, '%s: a thing')).toBe(true)
  expect(isTitled(`// 'a thing' was here`, 'a thing')).toBe(false)
  expect(isTitled(`test('another thing')`, 'a thing')).toBe(false)
  expect(isTitled(`const titles = { name: 'a thing' }`, 'a thing')).toBe(false)
})

test('a test that is skipped, or stands in what is, shows nothing', () => {
  for (const how of ['skip', 'todo', 'concurrent.skip', 'skip.each([1])'])
    expect(isTitled(`test('one', one)\ntest.${how}('a thing', () => {})`, 'a thing'), how).toBe(false)
  expect(isTitled(`describe.skip('all', () => {\n  test('a thing', () => {})`, 'a thing')).toBe(false)
  expect(isTitled(`test.skip('one', one)\ntest('a thing', () => {})`, 'a thing')).toBe(true)
})

test('a conversation that is not played shows nothing', () => {
  const quirks = 'packages/ai-agent/test/scripts/quirks.ts'
  expect(isThere(`${quirks} :: three rounds`)).toBe(true)
  expect(isThere(`${quirks} :: three squares`)).toBe(false)
})
