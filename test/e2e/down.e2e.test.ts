/** `./sandlot down` as a person types it, with a sandbox that has a file: what it keeps, and what `--purge` removes. */
import { spawn } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openSessionStore } from '../../packages/storage/src/store/open.ts'
import { testConfig } from '../../packages/sandbox/test/support/config.ts'
import {
  type DockerFixture,
  dockerFixture,
  shell,
} from '../../packages/sandbox/test/support/docker-fixture.ts'

const root = new URL('../..', import.meta.url).pathname
const QUESTION = 'Delete every sandbox of this Sandlot, with all files of all users? [y/N] '

let ours: DockerFixture
let theirs: DockerFixture
let data: string
beforeEach(async () => {
  ours = await dockerFixture()
  theirs = await dockerFixture()
  data = await mkdtemp(join(tmpdir(), 'sandlot-down-'))
  await mkdir(join(data, 'keys'), { mode: 0o700 })
  const keys = { id: ours.deployment, key: Buffer.from(ours.deploymentKey).toString('base64') }
  await writeFile(join(data, 'keys', 'deployment.json'), JSON.stringify(keys), { mode: 0o600 })
})
afterEach(async () => {
  await ours.dispose()
  await theirs.dispose()
  await rm(data, { recursive: true, force: true })
})

/** Output of a command in ann’s sandbox. The controller then ends like a killed agent, and the sandbox runs on. */
async function inOurs(command: string): Promise<string> {
  const store = await openSessionStore(join(data, 'sessions.db'))
  const controller = ours.controller({ ledger: store.ledger })
  try {
    return (await shell(await controller.acquire('ann'), command)).output.trim()
  } finally {
    await controller.close()
    await store.close()
  }
}

/** `./sandlot down …` as a process; `typed` is what somebody types at its terminal, without it there is none. */
async function down(args: readonly string[], typed?: string): Promise<{ code: number | null; said: string }> {
  const program = [`${root}node_modules/.bin/node`, '--conditions=sandlot-source']
  const command = [...program, `${root}packages/cli/src/main.ts`, 'down', ...args]
  // script(1) gives a program a terminal, and ends as it did.
  const [file = '', ...rest] =
    typed === undefined
      ? command
      : ['script', '--quiet', '--return', '--command', command.join(' '), '/dev/null']
  const child = spawn(file, rest, {
    env: {
      PATH: `${root}node_modules/.bin:/usr/local/bin:/usr/bin:/bin`,
      HOME: tmpdir(),
      LANG: 'C.UTF-8',
      SANDLOT_DATA: data,
      SANDLOT_SANDBOX: 'docker',
      DOCKER_HOST: testConfig.dockerHost,
    },
    stdio: 'pipe',
  })
  let said = ''
  const hear = (text: string): void => {
    const asked = said.includes(QUESTION)
    said += text
    if (typed !== undefined && !asked && said.includes(QUESTION)) child.stdin.write(`${typed}\n`)
  }
  child.stdout.setEncoding('utf8').on('data', hear)
  child.stderr.setEncoding('utf8').on('data', hear)
  if (typed === undefined) child.stdin.end()
  const code = await new Promise<number | null>((resolve, reject) =>
    child.once('error', reject).once('close', resolve),
  )
  return { code, said }
}

const states = async (fixture: DockerFixture): Promise<string[]> =>
  (await fixture.backend.list({})).map(({ state }) => state)

test('down leaves the sandboxes of an agent that is gone to the next start, down --end stops them, both keep everything', async () => {
  await inOurs('echo kept > file')
  expect(await down([])).toMatchObject({ code: 0, said: expect.stringContaining('not running') })
  expect(await states(ours)).toEqual(['running'])
  expect(await down(['--end'])).toMatchObject({ code: 0, said: expect.stringContaining('not running') })
  expect(await states(ours)).toEqual(['stopped'])
  expect(await inOurs('cat file')).toBe('kept')
})

test('down --purge without a yes stops and removes nothing', async () => {
  await inOurs('echo kept > file')
  expect(await down(['--purge'], 'n')).toMatchObject({
    code: 1,
    said: expect.stringContaining('Nothing was stopped or removed.'),
  })
  const alone = await down(['--purge'])
  expect(alone).toMatchObject({ code: 1, said: expect.stringContaining('Add --yes') })
  expect(await states(ours)).toEqual(['running'])
  expect(await inOurs('cat file')).toBe('kept')
})

test.each([
  { how: 'a yes at the terminal', args: ['--purge'], typed: 'y' },
  { how: '--yes', args: ['--purge', '--yes'], typed: undefined },
])('down --purge with $how leaves nothing of this deployment, and another’s as it was', async (given) => {
  const other = await theirs.controller().acquire('ann')
  await shell(other, 'echo theirs > file')
  await inOurs('echo ours > file')
  expect(await down(given.args, given.typed)).toMatchObject({
    code: 0,
    said: expect.stringContaining('Removed 1 containers and 1 workspaces.'),
  })
  expect(await ours.containers()).toEqual([])
  expect(await ours.volumes()).toEqual([])
  expect((await shell(other, 'cat file')).output).toBe('theirs\n')
  // The ledger is empty too: returning users start with an empty workspace.
  expect(await inOurs('ls')).toBe('')
})
