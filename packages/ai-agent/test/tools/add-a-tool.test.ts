/** docs/add-a-tool.md, tried out: its code is put where the page says, compiled, and its test is run. */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const AGENT = join(import.meta.dirname, '../..')
const ROOT = join(AGENT, '../..')
const run = promisify(execFile)

test('the example of the page compiles, and its test passes', async () => {
  const page = readFileSync(join(ROOT, 'docs/add-a-tool.md'), 'utf8')
  const [tool = '', itsTest = ''] = [...page.matchAll(/```ts\n([^]*?)```/g)].map((block) => block[1] ?? '')
  // Inside the package, so that its imports and settings hold; the paths of the page are those from its own places.
  const folder = await mkdtemp(join(AGENT, 'test/tools/page-'))
  try {
    await writeFile(join(folder, 'count-words.ts'), tool.replaceAll("from '../", "from '../../../src/tools/"))
    await writeFile(
      join(folder, 'count-words.test.ts'),
      itsTest
        .replace('../../src/tools/builtin/count-words.ts', './count-words.ts')
        .replaceAll("from '../", "from '../../")
        .replaceAll("from './local", "from '../local"),
    )
    await writeFile(
      join(folder, 'tsconfig.json'),
      JSON.stringify({ extends: '../../../../../tsconfig.json', include: ['.'] }),
    )
    const bin = join(ROOT, 'node_modules/.bin')
    // Only what it says about these two files: the rest of the tree is not this test's business.
    const compiled = await run(join(bin, 'tsc'), ['-p', folder, '--noEmit'], { cwd: ROOT }).catch(
      (error: { stdout: string }) => error,
    )
    expect(compiled.stdout.split('\n').filter((line) => line.includes('page-'))).toEqual([])
    const shown = await run(join(bin, 'vitest'), ['run', '--project', 'unit', folder], { cwd: ROOT })
    expect(shown.stdout).toMatch(/1 passed/)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})
