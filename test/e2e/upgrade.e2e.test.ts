/** `./sandlot up`, `down`, `backup` and `restore` as a person types them, around an approval that is open. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { randomBytes } from 'node:crypto'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { metaOf } from '@sandlot/shared/chat/events'
import { randomText } from '@sandlot/shared/base/ids'
import { createDockerBackend } from '../../packages/sandbox/src/backends/docker/backend.ts'
import { afterEach, beforeEach, expect, test } from 'vitest'
import {
  type FakeProvider,
  startFakeProvider,
  textAnswer,
  toolCalls,
} from '../../packages/ai-agent/test/support/fake-provider.ts'
import { openSessionReader } from '../../packages/storage/src/store/open.ts'
import { readRecord } from '../../packages/cli/src/processes/pid-file.ts'
import { isRunning, signalProcess, waitForEnd } from '../../packages/cli/src/processes/process-mark.ts'
import { campaign, onlyInFullRun } from '../campaign.ts'
import { personEnvironment } from '../config.ts'
import { firstVisit, launchBrowser } from './browser.ts'
import { freePort } from './processes.ts'

const root = new URL('../..', import.meta.url).pathname

let data: string
let deployment: string
let port: number
let provider: FakeProvider
beforeEach(async ({ skip }) => {
  onlyInFullRun(skip)
  data = await mkdtemp(join(tmpdir(), 'sandlot-up-'))
  // A name by which `./sandlot test` knows what an interrupted run left, and removes it.
  deployment = `test-${randomText(8)}`
  await mkdir(join(data, 'keys'), { mode: 0o700 })
  const keys = JSON.stringify({ id: deployment, key: randomBytes(32).toString('base64') })
  await writeFile(join(data, 'keys', 'deployment.json'), keys, { mode: 0o600 })
  port = await freePort()
  provider = await startFakeProvider()
})
afterEach(async () => {
  if (!campaign.full) return
  await sandlot('down', '--purge', '--yes').ended
  settings = undefined
  await provider.close()
  await rm(data, { recursive: true, force: true })
})

/** `./sandlot <args>` as a process, with everything that it has printed. */
function sandlot(...args: string[]) {
  const program = ['--conditions=sandlot-source', `${root}packages/cli/src/main.ts`]
  const child = spawn(`${root}node_modules/.bin/node`, [...program, ...args], {
    env: {
      ...personEnvironment(),
      SANDLOT_DATA: data,
      PORT: String(port),
      SANDLOT_DEFAULT_MODE: 'manual',
      SANDLOT_SANDBOX_POOL: '0',
      OPENAI_BASE_URL: provider.baseUrl,
      OPENAI_MODEL: 'scripted',
      ...settings,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let said = ''
  const hear = (text: string): void => void (said += text)
  child.stdout.setEncoding('utf8').on('data', hear)
  child.stderr.setEncoding('utf8').on('data', hear)
  const ended = once(child, 'close').then(([code]) => code as number | null)
  return { child, ended, said: () => said }
}
let settings: Record<string, string> | undefined

async function up(): Promise<ReturnType<typeof sandlot> & { address: string }> {
  const running = sandlot('up')
  const ready = /Sandlot is ready: (\S+)/
  await expect.poll(running.said, { timeout: 110_000 }).toMatch(ready)
  return { ...running, address: ready.exec(running.said())?.[1] ?? '' }
}

/** A command that ran to its end, with what it has printed. */
async function run(...args: string[]): Promise<string> {
  const running = sandlot(...args)
  expect({ code: await running.ended, said: running.said() }).toMatchObject({ code: 0 })
  return running.said()
}

const touch = (name: string) =>
  toolCalls([{ id: name, name: 'run_shell_command', args: { command: `touch ${name}; ls` } }])

test('an approval that is open outlives a restore of its backup, a kill of the agent and down; down --end ends it', async () => {
  const url = `http://127.0.0.1:${port}`
  settings = { SANDLOT_BACKUP_PASSPHRASE: 'correct horse battery staple' }
  const first = await up()
  const browser = await launchBrowser()
  try {
    const ada = await firstVisit(browser, { url, setupUrl: first.address })
    const approval = ada.page.getByTestId('approval')
    const allow = approval.getByRole('button', { name: /^allow(?! for)/i })
    provider.add(touch('earlier'), textAnswer('Made.'), touch('kept'), textAnswer('It waited.'))
    await ada.say('make a file')
    await allow.click()
    await ada.answers.filter({ hasText: 'Made.' }).waitFor()
    await ada.say('touch it')
    await approval.waitFor()
    const made = await run('backup')
    const file = /Wrote and verified (\S+\.tar) \(\d+ MiB, 1 workspaces\)/.exec(made)?.[1] ?? made
    first.child.kill('SIGINT')
    expect(await first.ended).toBe(0)
    expect(first.said()).toContain('prompts resume at the next start')
    await run('down', '--purge', '--yes')
    expect((await sandlot('restore', file).ended) ?? 0).toBe(1)

    settings = { ...settings, SANDLOT_DATA: join(data, 'restored') }
    expect(await run('restore', file)).toContain('with 1 workspaces')
    const second = await up()
    const agent = readRecord(join(data, 'restored', 'run', 'up.json'))?.children['ai-agent']
    if (agent === undefined) throw new Error('the agent is not in the record')
    signalProcess(agent, 'SIGKILL')
    await waitForEnd(agent, 10_000)
    expect(await sandlot('down').ended).toBe(0)
    expect(await second.ended).toBe(0)

    const third = await up()
    // The same sign-in as before.
    await ada.page.goto(ada.page.url())
    await allow.click()
    await ada.answers.filter({ hasText: 'It waited.' }).waitFor()
    const result = String(provider.requests.at(-1)?.body.messages.at(-1)?.content)
    expect(result).toMatch(/earlier\s+kept/)

    provider.add(touch('never'), textAnswer('Never said.'))
    await ada.say('once more')
    await approval.waitFor()
    expect(await sandlot('down').ended).toBe(0)
    expect(await third.ended).toBe(0)
    // Nothing runs any more: what waits for the next start is ended, and so are the sandboxes that run on.
    await run('down', '--end')
    const backend = createDockerBackend({ deployment })
    expect((await backend.list({})).map(({ state }) => state)).toEqual(['stopped'])
    await backend.inventory.close()
    const reader = await openSessionReader(join(data, 'restored', 'sessions.db'))
    const events = await reader.log.read(new URL(ada.page.url()).pathname.split('/').at(-1) ?? '')
    await reader.close()
    const last = events.map((event) => metaOf(event).event?.type).filter((type) => type !== undefined)
    expect(last.at(-1)).toBe('prompt_ended')
  } finally {
    await browser.close()
  }
}, 400_000)

test('a start that fails ends at once, and what it had started with it', async () => {
  settings = { SANDLOT_CONFIG: join(data, 'missing.json') }
  const failed = sandlot('up')
  // Before it would have given up waiting for an answer.
  expect(await failed.ended).toBe(1)
  settings = undefined
  expect(failed.said()).toContain('ai-agent exited during startup')
  const left = Object.values(readRecord(join(data, 'run', 'up.json'))?.children ?? {})
  expect(left.filter((mark) => isRunning(mark))).toEqual([])
}, 50_000)
