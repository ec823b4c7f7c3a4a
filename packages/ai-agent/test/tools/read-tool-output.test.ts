import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import { beforeEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { builtinTools } from '../../src/tools/builtin/index.ts'
import { defineTool, type ToolOutcome } from '../../src/tools/tool.ts'
import { createLineMatcher } from '../../src/tools/output/line-matcher.ts'
import { findStoredLines, readStoredLines } from '../../src/tools/output/stored-text.ts'
import { TestBatch } from '../calls/test-batch.ts'
import { useSandboxes } from './use-sandboxes.ts'
import { pageRoom } from '../../src/tools/output/line-page.ts'
import { DEFAULT_RESULT_LIMITS } from '../../src/tools/output/truncate-output.ts'

const ROOM = pageRoom(DEFAULT_RESULT_LIMITS)

const text = (outcome: ToolOutcome): string => outcome.forModel
/** A tool that says a lot, as an MCP server may. */
const talkative = defineTool({
  name: 'talk',
  description: 'Says many lines.',
  kind: 'other',
  input: z.strictObject({ lines: z.int().describe('How many.') }),
  readOnly: true,
  title: () => 'Talk',
  // oxlint-disable-next-line require-yield
  async *execute({ lines }) {
    return {
      status: 'completed',
      forModel: Array.from({ length: lines }, (_, index) => `line ${index + 1}`).join('\n'),
    }
  },
})

describe('read_tool_output', () => {
  const local = useSandboxes()
  let batch: TestBatch
  beforeEach(() => {
    batch = new TestBatch({ sandboxes: () => local.sandboxes, tools: [...builtinTools(), talkative] })
  })
  const read = (more: Record<string, unknown>) => batch.call('read_tool_output', { call_id: 'long', ...more })

  test('a result that was too long is stored, says how to read on, and pages give all of it', async () => {
    const cut = await batch.call('talk', { lines: 5000 }, 'long')
    expect(text(cut).length).toBeLessThanOrEqual(11_000)
    expect(text(cut)).toContain('read_tool_output (call_id "long"')
    expect(cut.outputInfo).toMatchObject({ lines: 5000, truncated: true })
    const lines: string[] = []
    for (let offset = 1; offset !== 0;) {
      const page = text(await read({ offset }))
      lines.push(...page.split('\n').flatMap((line) => /^\d+\t(.*)$/.exec(line)?.[1] ?? []))
      offset = Number(/Go on with offset (\d+)/.exec(page)?.[1] ?? 0)
    }
    expect(lines).toEqual(Array.from({ length: 5000 }, (_, index) => `line ${index + 1}`))
  })

  test('what was not stored is said with each page', async () => {
    batch = new TestBatch({
      sandboxes: () => local.sandboxes,
      tools: [...builtinTools(), talkative],
      settings: { outputLimitBytes: 13 },
    })
    await batch.call('talk', { lines: 5000 }, 'long')
    const note =
      '[Only the first 13 bytes of the 48,892 bytes of this output could be stored: the limit of one output is reached.]'
    expect(text(await read({}))).toBe(`1\tline 1\n2\tline 2\n${note}`)
    expect(text(await read({ pattern: '2' }))).toBe(`2:line 2\n${note}`)
    expect(text(await read({ from_byte: 0 }))).toBe(`line 1\nline 2\n${note}`)
  })

  test('a command: by range, by pattern with context, by bytes, without its colours', async () => {
    const command = "for i in $(seq 3000); do printf '\\033[31mline %s\\033[0m\\n' $i; done"
    await batch.call('run_shell_command', { command }, 'long')
    expect(text(await read({ offset: 1500, limit: 2 }))).toMatch(
      /^1500\tline 1500\n1501\tline 1501\n\[There is more/,
    )
    expect(text(await read({ pattern: 'LINE 29[0-1]0$', ignore_case: true, context: 1 }))).toBe(
      '2899-line 2899\n2900:line 2900\n2901-line 2901\n--\n2909-line 2909\n2910:line 2910\n2911-line 2911',
    )
    expect(text(await read({ pattern: 'line 1\\d\\d$', limit: 3 }))).toBe(
      '100:line 100\n101:line 101\n102:line 102\n[There is more. Go on with offset 103.]',
    )
    expect(text(await read({ pattern: 'nowhere' }))).toBe('No line matches nowhere.')
    expect(text(await read({ from_byte: 0 }))).toMatch(/^line 1\nline 2\n[^]*Go on with from_byte \d+/)
  })

  test('what is wrong is said: another id, a line that is not there, a bad pattern', async () => {
    await batch.call('echo', { value: 'hi' }, 'long')
    expect(text(await read({}))).toMatch(/^1\t\{"value":"hi",/)
    expect(await read({ call_id: 'nope' })).toMatchObject({
      reason: 'invalid_arguments',
      forModel: expect.stringMatching(/no call with the id "nope"\. The last that ended are: long/),
    })
    expect(await read({ offset: 9 })).toMatchObject({ reason: 'invalid_arguments' })
    expect(await read({ pattern: '(' })).toMatchObject({ reason: 'invalid_arguments' })
  })
})

test('a pattern that never ends ends with its call, and holds up nobody', async () => {
  await using matcher = createLineMatcher('^(a+)+$', false)
  const stop = new AbortController()
  const matching = matcher.match([`${'a'.repeat(60)}b`], stop.signal)
  // The event loop continues in between, or this timer would never fire.
  await sleep(20)
  stop.abort('timeout')
  await expect(matching).rejects.toBe('timeout')
})

test('pages of a text are the text, wherever the ranges are cut', async () => {
  const anyText = fc.stringMatching(/^[aé\u{1F600}\n]{0,80}$/u)
  await fc.assert(
    fc.asyncProperty(
      anyText,
      fc.integer({ min: 1, max: 7 }),
      fc.integer({ min: 1, max: 5 }),
      async (whole, most, limit) => {
        const bytes = Buffer.from(whole)
        const read = async (from: number, to: number) => bytes.subarray(from, Math.min(to, from + most))
        const seen: string[] = []
        for (let from = 1; ;) {
          const page = await readStoredLines(read, from, limit, ROOM, new AbortController().signal)
          seen.push(...page.lines.map((line) => line.replace(/^\d+\t/, '')))
          if (page.next === undefined) break
          from = page.next
        }
        const lines = whole.split('\n')
        if (lines.at(-1) === '') lines.pop()
        expect(seen).toEqual(lines)
      },
    ),
    { numRuns: 100 },
  )
})

test('matches are found whatever the page, each once', async () => {
  const lines = Array.from({ length: 400 }, (_, index) => (index % 3 === 0 ? `hit ${index}` : 'no'))
  const bytes = Buffer.from(lines.join('\n'))
  const read = async (from: number, to: number) => bytes.subarray(from, to)
  const seen: string[] = []
  await using matcher = createLineMatcher('hit', false)
  for (let from = 1; ;) {
    const search = { context: 0, from, limit: 50 }
    const found = await findStoredLines(read, matcher, search, ROOM, new AbortController().signal)
    seen.push(...found.lines.map((line) => line.split(':')[1] ?? ''))
    if (found.next === undefined) break
    from = found.next
  }
  expect(seen).toEqual(lines.filter((line) => line !== 'no'))
})
