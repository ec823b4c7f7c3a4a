/** The program that watches: what it loads, and what it leaves alone. */
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { parseCliConfig } from '../../src/config.ts'
import { END_SIGNAL, type StopSignal } from '../../src/processes/stop-signals.ts'
import { createSteps } from '../../src/steps.ts'
import { runUntilStopped } from '../../src/supervisor/running.ts'

/** Prints each module that is loaded: what stays in memory as long as Sandlot runs. */
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

/** In the place of what is built. */
const PROGRAMS = {
  'engine-gate/dist/main.js':
    "require('node:net').createServer((socket) => socket.on('error', () => {})).listen(process.env.SANDLOT_DATA + '/run/engine/docker.sock')",
  'ai-agent/dist/main.js': 'setInterval(() => {}, 1000)',
  'service/dist/main.js': 'setInterval(() => {}, 1000)',
  'cli/dist/supervisor/wait-until-ready.js': `process.stdout.write('{"ready":true,"reasons":[]}')`,
}

test('an up that ends asks the engine for no sandbox of its own accord: those of other agents may be there', async () => {
  const root = mkdtempSync(join(tmpdir(), 'sandlot-supervisor-'))
  for (const [path, text] of Object.entries(PROGRAMS)) {
    mkdirSync(dirname(join(root, 'packages', path)), { recursive: true })
    writeFileSync(join(root, 'packages', path), text)
  }
  for (const path of ['keys', 'run/engine']) mkdirSync(join(root, '.sandlot', path), { recursive: true })
  writeFileSync(join(root, '.sandlot/keys/deployment.json'), '{"id":"d"}')
  const asked: string[] = []
  const engine = createServer(({ url = '' }, response) => {
    asked.push(url)
    response.end('{}')
  }).listen(0, '127.0.0.1')
  await once(engine, 'listening')
  const { port } = engine.address() as AddressInfo
  const config = parseCliConfig(
    { DOCKER_HOST: `tcp://127.0.0.1:${port}`, SANDLOT_SANDBOX_IMAGE: 'one/of:ours' },
    root,
  )
  const stop = Promise.withResolvers<StopSignal>()
  const context = {
    config,
    args: [],
    steps: createSteps({ live: false, write: () => undefined }),
    print: (line: string) => void (line.startsWith('Sandlot is ready') && stop.resolve(END_SIGNAL)),
  }
  const record = { up: { pid: process.pid, started: '' }, url: 'http://127.0.0.1:8002', children: {} }
  const stopping = {
    signal: new AbortController().signal,
    requested: stop.promise,
    onImpatience: () => undefined,
    [Symbol.dispose]: () => undefined,
  }
  expect(await runUntilStopped(context, record, stopping)).toBe(0)
  expect(asked).toEqual([])
  engine.close()
  rmSync(root, { recursive: true })
}, 30_000)
