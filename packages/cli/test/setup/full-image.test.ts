/** The larger image is built after the start: its state during the build, after a failure and after Ctrl-C. */
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { FULL_IMAGE_FILE } from '@sandlot/shared/config/full-image'
import { beforeEach, expect, test } from 'vitest'
import { LOCAL_PROCESS, nodeEnvironment } from '../../../../test/config.ts'
import { type CliConfig, parseCliConfig } from '../../src/config.ts'
import { buildFullImage, clearFullImageState } from '../../src/setup/full-image.ts'
import { testFolder } from '../../../../test/folders.ts'

let root: string
let said: string[]
beforeEach(() => {
  root = testFolder('full')
  mkdirSync(join(root, 'docker'))
  said = []
})

/** In the place of the real one, which takes minutes. `ran` holds its arguments. */
function script(body: string): void {
  const file = join(root, 'docker/build-images.sh')
  writeFileSync(file, `#!/bin/sh\necho "$@" >>"${root}/ran"\n${body}\n`)
  chmodSync(file, 0o755)
}
const configOf = (env: Record<string, string> = {}): CliConfig =>
  parseCliConfig({ PATH: nodeEnvironment().PATH, SANDLOT_DATA: join(root, 'data'), ...env }, root)
const build = (config = configOf(), signal = new AbortController().signal): Promise<void> =>
  buildFullImage(config, { note: (line) => said.push(line) }, signal)
const state = (): unknown => {
  const file = join(root, 'data', FULL_IMAGE_FILE)
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as unknown) : undefined
}
const BUILDING = 'echo "  … build sandlot/sandbox-full:0123 (first time: some minutes)" >&2'

test('its state is shown from then on, and no more when it is there', async () => {
  script(`${BUILDING}\nwhile [ ! -e "${root}/go" ]; do sleep 0.05; done`)
  const building = build()
  await expect.poll(state).toEqual({ state: 'building' })
  writeFileSync(join(root, 'go'), '')
  await building
  expect(state()).toBeUndefined()
  expect(said).toEqual([])
  expect(readFileSync(join(root, 'ran'), 'utf8')).toBe('--full\n')
})

test('a failure is reported once, with its log, and not retried by itself', async () => {
  script(`${BUILDING}\necho "build-images: the build failed" >&2; exit 1`)
  await build()
  expect(state()).toEqual({ state: 'failed' })
  expect(said).toEqual([
    expect.stringMatching(/Couldn’t build.*Sandboxes use the smaller one.*full-image\.log$/),
  ])
  expect(readFileSync(join(root, 'ran'), 'utf8')).toBe('--full\n')
  clearFullImageState(configOf())
  expect(state()).toBeUndefined()
})

test('Ctrl-C ends the build with all that it started, and is no failure', async () => {
  script(`${BUILDING}\necho $$ >"${root}/pid"\nexec sleep 600`)
  const stop = new AbortController()
  const building = build(configOf(), stop.signal)
  await expect.poll(() => existsSync(join(root, 'pid'))).toBe(true)
  await expect.poll(state).toEqual({ state: 'building' })
  stop.abort()
  await building
  expect(state()).toBeUndefined()
  expect(said).toEqual([])
  const pid = Number(readFileSync(join(root, 'pid'), 'utf8'))
  expect(() => process.kill(pid, 0)).toThrow('ESRCH')
})

test.each([
  ['an image of the operator’s own', { SANDLOT_SANDBOX_IMAGE: 'my-sandbox:1' }],
  ['no containers', LOCAL_PROCESS],
])('with %s nothing is made', async (_what, env) => {
  script(BUILDING)
  await build(configOf(env))
  expect(existsSync(join(root, 'ran'))).toBe(false)
})
