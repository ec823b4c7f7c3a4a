/** Every row of what the agent must do, and of the protocol, has a test, and that test is there. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { testTitles } from '../../../../test/test-titles.ts'
import { SCRIPTS } from '../scripts/all.ts'
import { ACP_ROWS } from './acp-rows.ts'
import { LOOP_ROWS } from './loop-rows.ts'
import { MODEL_ROWS } from './model-rows.ts'

const ROOT = join(import.meta.dirname, '../../../..')
/** Conversations whose titles stand in data; they are tests where the campaign plays them. */
const SCRIPT_FILE = /^packages\/ai-agent\/test\/scripts\/(?!.*\.test\.ts$)/
const PLAYED = new Set(SCRIPTS.map(({ name }) => name))

const rows = Object.entries({ ...LOOP_ROWS, ...MODEL_ROWS, ...ACP_ROWS }).flatMap(([section, named]) =>
  Object.entries(named).map(([row, tests]) => [`${section}: ${row}`, tests] as const),
)

const files = new Map<string, readonly string[]>()

function isThere(named: string): boolean {
  const [file = '', title = ''] = named.split(' :: ')
  if (SCRIPT_FILE.test(file)) return PLAYED.has(title)
  const titles = files.get(file) ?? testTitles(readFileSync(join(ROOT, file), 'utf8'))
  files.set(file, titles)
  return titles.includes(title)
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
    durability: 10,
    limits: 4,
  })
  expect(count(MODEL_ROWS)).toEqual({ models: 11 })
  expect(count(ACP_ROWS)).toEqual({
    methods: 18,
    updates: 12,
    'calls, permission, ends': 4,
    transports: 4,
    'what bites': 9,
    'editors and foreign clients': 7,
  })
})

test('a test that vanished is missed', () => {
  const file = 'packages/ai-agent/test/rows/rows.test.ts'
  expect(isThere(`${file} :: no row was lost`)).toBe(true)
  expect(isThere(`${file} :: no row was`)).toBe(false)
})

test('a conversation that is not played shows nothing', () => {
  const quirks = 'packages/ai-agent/test/scripts/quirks.ts'
  expect(isThere(`${quirks} :: three rounds`)).toBe(true)
  expect(isThere(`${quirks} :: three squares`)).toBe(false)
})
