/** Operators' limits of one result hold for every tool, and each names the way to read on. */
import { beforeEach, describe, expect, test } from 'vitest'
import type { Sandbox } from '@sandlot/sandbox/sandbox'
import { readAgentConfig } from '../../src/config/config.ts'
import { TestBatch } from '../calls/test-batch.ts'
import { hasRipgrep } from './local-sandboxes.ts'
import { emptySandbox, useSandboxes } from './use-sandboxes.ts'

const LINES = Array.from({ length: 3_000 }, (_, index) => `line ${index + 1} of the text`)
/** The allowance for notices in a cut result. */
const WORDS = { chars: 1_000, lines: 20 }

const local = useSandboxes()
let sandbox: Sandbox
beforeEach(async () => {
  sandbox = await emptySandbox(local)
  await sandbox.files.write('text', Buffer.from(`${LINES.join('\n')}\n`))
})

const limited = (chars: number, lines: number): TestBatch =>
  new TestBatch({ sandboxes: () => local.sandboxes, results: { chars, lines } })

test('the settings are read, and bounded', () => {
  const read = (env: Record<string, string>) =>
    readAgentConfig([], { SANDLOT_DATA: '/tmp/none', ...env }).results
  expect(read({})).toEqual({ chars: 10_000, lines: 1_000 })
  expect(read({ SANDLOT_RESULT_CHARS: '200000', SANDLOT_RESULT_LINES: '10' })).toEqual({
    chars: 200_000,
    lines: 10,
  })
  for (const [name, value] of [
    ['SANDLOT_RESULT_CHARS', '999'],
    ['SANDLOT_RESULT_CHARS', '200001'],
    ['SANDLOT_RESULT_LINES', '9'],
    ['SANDLOT_RESULT_LINES', '20001'],
  ] as const)
    expect(() => read({ [name]: value })).toThrow(name)
})

describe('a result of a command', () => {
  test.each([
    { chars: 1_000, lines: 1_000 },
    { chars: 100_000, lines: 10 },
    { chars: 1_000, lines: 10 },
  ])('is cut to $chars characters and $lines lines', async ({ chars, lines }) => {
    const { forModel } = await limited(chars, lines).call('run_shell_command', { command: 'cat text' })
    expect(forModel.length).toBeLessThanOrEqual(chars + WORDS.chars)
    expect(forModel.split('\n').length).toBeLessThanOrEqual(lines + WORDS.lines)
    expect(forModel).toContain('is left out here')
    expect(forModel).toContain('line 3000 of the text')
  })

  test('is whole up to larger limits', async () => {
    const { forModel, outputInfo } = await limited(200_000, 20_000).call('run_shell_command', {
      command: 'cat text',
    })
    expect(forModel).toContain(LINES.join('\n'))
    expect(outputInfo).toMatchObject({ truncated: false })
  })
})

describe('pages', () => {
  test.each([
    { chars: 1_000, lines: 10, most: 6 },
    { chars: 200_000, lines: 2_000, most: 1_996 },
  ])(
    'of a file have at most $most of $lines lines, and lead through all of it',
    async ({ chars, lines, most }) => {
      const batch = limited(chars, lines)
      let from = 1
      const first = await batch.call('read_file', { path: 'text' })
      expect(first.forModel.length).toBeLessThanOrEqual(chars)
      expect(first.data).toMatchObject({ from, lines: most })
      from += most
      expect(first.forModel).toContain(`Go on with offset ${from}`)
      const second = await batch.call('read_file', { path: 'text', offset: from })
      expect(second.forModel).toContain(`${from}\tline ${from} of the text`)
    },
  )

  test('have a line at least, however long it is', async () => {
    await sandbox.files.write('long', Buffer.from(`${'x'.repeat(50_000)}\nlast\n`))
    const { forModel } = await limited(1_000, 10).call('read_file', { path: 'long' })
    expect(forModel).toMatch(/^1\tx+ \[… [\d,]+ more characters in this line\]/)
    expect(forModel.length).toBeLessThanOrEqual(1_000)
    expect(forModel).toContain('last')
  })

  test.skipIf(!hasRipgrep)('of a search say truly where to go on', async () => {
    const batch = limited(1_000, 10)
    const { forModel } = await batch.call('search_text', { pattern: 'of the text' })
    const next = Number(/Go on with offset (\d+)/.exec(forModel)?.[1])
    expect(forModel).not.toContain('left out here')
    const more = await batch.call('search_text', { pattern: 'of the text', offset: next })
    expect(more.forModel.split('\n')[0]).toBe(`text:${next + 1}:line ${next + 1} of the text`)
  })

  test('of an earlier result', async () => {
    const batch = limited(1_000, 10)
    await batch.call('run_shell_command', { command: 'cat text' }, 'earlier')
    const page = await batch.call('read_tool_output', { call_id: 'earlier', offset: 100 })
    expect(page.forModel).toContain('Go on with offset 106')
    expect(page.forModel.length).toBeLessThanOrEqual(1_000)
    const found = await batch.call('read_tool_output', { call_id: 'earlier', pattern: 'line' })
    expect(found.forModel.split('\n').length).toBeLessThanOrEqual(10)
  })
})
