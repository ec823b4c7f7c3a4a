/** Names reach the model as git quotes them, the same by every tool. */
import type { Sandbox } from '@sandlot/sandbox/sandbox'
import { beforeAll, describe, expect, test } from 'vitest'
import { quotePath } from '@sandlot/shared/base/quoted-path'
import { TestBatch } from '../calls/test-batch.ts'
import { hasRipgrep } from './local-sandboxes.ts'
import { useSandboxes } from './use-sandboxes.ts'

const NAMES: Record<string, string> = {
  'plain name.txt': 'plain name.txt',
  'größe – 图.txt': 'größe – 图.txt',
  'a\nb.txt': String.raw`"a\nb.txt"`,
  'tab\tand\rreturn': String.raw`"tab\tand\rreturn"`,
  'red\u001B[31m': String.raw`"red\033[31m"`,
  'say "x"': String.raw`"say \"x\""`,
  'exe\u202Etxt.sh': String.raw`"exe\342\200\256txt.sh"`,
  'zero\u200Bwidth': String.raw`"zero\342\200\213width"`,
  'line\u2028end': String.raw`"line\342\200\250end"`,
}

test('a path is quoted where something in it is not seen, and only there', () => {
  for (const [name, quoted] of Object.entries(NAMES)) expect(quotePath(name)).toBe(quoted)
  expect(quotePath(String.raw`a\b`)).toBe(String.raw`"a\\b"`)
})

describe('the tools', () => {
  const local = useSandboxes()
  let batch: TestBatch
  let sandbox: Sandbox
  beforeAll(async () => {
    batch = new TestBatch({ sandboxes: () => local.sandboxes })
    sandbox = await local.sandboxes.acquire('u_test')
    for (const name of Object.keys(NAMES)) await sandbox.files.write(`in/${name}`, Buffer.from('needle\n'))
  }, 60_000)

  const lines = async (tool: string, args: Record<string, unknown>): Promise<string[]> =>
    (await batch.call(tool, args)).forModel.split('\n')

  test('list_directory', async () => {
    const listed = await lines('list_directory', { path: 'in' })
    expect(listed.slice(1).toSorted()).toEqual(
      Object.values(NAMES)
        .map((quoted) => `${quoted}  7 bytes`)
        .toSorted(),
    )
  })

  const below = (name: string): string => (name.startsWith('"') ? `"in/${name.slice(1)}` : `in/${name}`)
  test.skipIf(!hasRipgrep)('glob', async () => {
    expect((await lines('glob', { pattern: '**/*', path: 'in' })).toSorted()).toEqual(
      Object.values(NAMES).map(below).toSorted(),
    )
  })

  test.skipIf(!hasRipgrep)('search_text', async () => {
    const expected = Object.values(NAMES).map((quoted) => `${below(quoted)}:1:needle`)
    expect((await lines('search_text', { pattern: 'needle', path: 'in' })).toSorted()).toEqual(
      expected.toSorted(),
    )
  })

  test.skipIf(!hasRipgrep)('a line that search_text finds poses as no other', async () => {
    await sandbox.files.write('out/f', Buffer.from('hit\rout/g:9:innocent \u001B[2K\r\n'))
    expect(await lines('search_text', { pattern: 'hit', path: 'out' })).toEqual([
      String.raw`out/f:1:hit\015out/g:9:innocent \033[2K`,
    ])
  })

  test.skipIf(!hasRipgrep)('what ripgrep says of a file poses as no result', async () => {
    await sandbox.files.write('odd/a\nodd/b:1:fake/.ignore', Buffer.from('{x\n'))
    await sandbox.files.write('odd/c', Buffer.from('hit\n'))
    const found = await lines('search_text', { pattern: 'hit', path: 'odd' })
    expect(found).toContain('odd/c:1:hit')
    expect(found.some((line) => line.includes('error parsing glob'))).toBe(true)
    expect(found.filter((line) => line.startsWith('odd/b'))).toEqual([])
  })

  test('titles and reasons of calls', async () => {
    const asking = new TestBatch({ sandboxes: () => local.sandboxes, mode: 'manual' })
    await asking.call('write_file', { path: 'in/x\u001B[2J\ny', content: '' })
    const told = JSON.stringify(asking.log.filter((event) => event.sessionUpdate !== 'tool_call'))
    expect(told).toContain(JSON.stringify(String.raw`"/workspace/in/x\033[2J\ny"`).slice(1, -1))
    const [announced] = asking.log
    expect(announced).toMatchObject({ title: String.raw`Write "in/x\033[2J\ny"` })
  })

  test('a sentence about a file', async () => {
    const { forModel } = await batch.call('write_file', { path: 'in/x\ny', content: '' })
    expect(forModel).toBe(String.raw`Wrote 0 bytes to "/workspace/in/x\ny"`)
    await sandbox.files.remove('in/x\ny')
  })
})
