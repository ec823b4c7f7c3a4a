/** What stays in memory as long as Sandlot runs: the modules that the supervisor has loaded before it starts anything. */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

/** Prints each module that is loaded. */
const HOOK = `import { registerHooks } from 'node:module'
import { writeSync } from 'node:fs'
registerHooks({
  resolve(specifier, context, next) {
    const found = next(specifier, context)
    writeSync(1, found.url + '\\n')
    return found
  },
})`

test('the supervisor loads neither zod nor a client of HTTP', () => {
  const program = fileURLToPath(new URL('../../src/supervisor/main.ts', import.meta.url))
  // Without anything to watch it ends as soon as all of it is loaded.
  const { stdout } = spawnSync(process.execPath, [
    '--conditions=sandlot-source',
    `--import=data:text/javascript,${encodeURIComponent(HOOK)}`,
    program,
  ])
  const loaded = stdout.toString().split('\n')
  expect(loaded).toContainEqual(expect.stringContaining('/supervisor/running.ts'))
  expect(loaded.filter((url) => /\/zod\/|^node:https?$|\/shared\/src\/api/.test(url))).toEqual([])
})
