/** The row *timeout*: the limits that tools have by default, and the least and the most there are. */
import { expect, test } from 'vitest'
import { z } from 'zod'
import { readAgentConfig } from '../../../src/config/config.ts'
import { builtinTools } from '../../../src/tools/builtin/index.ts'
import { defineTool } from '../../../src/tools/tool.ts'
import { TestBatch } from '../test-batch.ts'

const byName = new Map(builtinTools().map((tool) => [tool.name, tool]))

test('file tools 5 s, searches 30 s, handlers 10 s, the shell 120 s unless the call says otherwise', () => {
  for (const name of ['read_file', 'write_file', 'edit_file', 'list_directory'])
    expect([name, byName.get(name)?.runs?.timeoutMs]).toEqual([name, 5000])
  // No file tools: they go through the whole workspace, however large it is.
  for (const name of ['glob', 'search_text'])
    expect([name, byName.get(name)?.runs?.timeoutMs]).toEqual([name, 30_000])
  expect(readAgentConfig([], { SANDLOT_DATA: '/tmp/none' }).toolTimeoutMs).toBe(10_000)
  const shell = byName.get('run_shell_command')?.input as z.ZodObject
  expect(shell.parse({ command: 'true' })).toMatchObject({ timeout_ms: 120_000 })
  expect(shell.safeParse({ command: 'true', timeout_ms: 999 }).success).toBe(false)
  expect(shell.safeParse({ command: 'true', timeout_ms: 300_001 }).success).toBe(false)
})

test('no tool has less than a second or more than five minutes, whatever it declares', async () => {
  const seen: (number | undefined)[] = []
  const tool = (name: string, timeoutMs: number) =>
    defineTool({
      name,
      description: 'Tells its limit.',
      kind: 'other',
      input: z.strictObject({ timeout_ms: z.int().optional().describe('Its limit.') }),
      readOnly: true,
      runs: { timeoutMs },
      title: () => name,
      // oxlint-disable-next-line require-yield
      async *execute(_args, ctx) {
        seen.push(ctx.deadline?.limitMs)
        return { status: 'completed', forModel: 'ok' }
      },
    })
  const batch = new TestBatch({ tools: [tool('a', 5000)] })
  await batch.call('a', {}, 'c1')
  await batch.call('a', { timeout_ms: 1 }, 'c2')
  await batch.call('a', { timeout_ms: 9_999_999 }, 'c3')
  expect(seen).toEqual([5000, 1000, 300_000])
})
